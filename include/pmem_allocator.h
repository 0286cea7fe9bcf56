/* pmem_allocator.h: a C++ allocator (C++11 and later) on a file. Part of nearfar (docs/memkind.md).
   SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef NEARFAR_PMEM_ALLOCATOR_H
#define NEARFAR_PMEM_ALLOCATOR_H

#include <memkind_detail.h>

namespace libmemkind {
namespace pmem {

template <class T>
class allocator {
public:
    using value_type = T;
    using pointer = T *;
    using const_pointer = const T *;
    using reference = T &;
    using const_reference = const T &;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;

    template <class U>
    struct rebind {
        using other = allocator<U>;
    };

    allocator(const char *dir, std::size_t max_size, allocation_policy policy = allocation_policy::DEFAULT)
        : kind_(make(dir, max_size, policy))
    {
    }

    allocator(const std::string &dir, std::size_t max_size, allocation_policy policy = allocation_policy::DEFAULT)
        : allocator(dir.c_str(), max_size, policy)
    {
    }

    template <class U>
    allocator(const allocator<U> &other) noexcept : kind_(other.kind_)
    {
    }

    template <class U>
    allocator &operator=(const allocator<U> &other) noexcept
    {
        kind_ = other.kind_;
        return *this;
    }

    pointer allocate(size_type n) const
    {
        return detail::allocate<T>(kind_->get(), n);
    }

    void deallocate(pointer p, size_type) const
    {
        memkind_free(kind_->get(), p);
    }

    template <class U, class... Args>
    void construct(U *p, Args &&...args) const
    {
        ::new (static_cast<void *>(p)) U(std::forward<Args>(args)...);
    }

    template <class U>
    void destroy(U *p) const
    {
        p->~U();
    }

    template <class U>
    bool operator==(const allocator<U> &other) const noexcept
    {
        return kind_->get() == other.kind_->get();
    }

    template <class U>
    bool operator!=(const allocator<U> &other) const noexcept
    {
        return !(*this == other);
    }

private:
    template <class U>
    friend class allocator;

    static std::shared_ptr<detail::owned_kind> make(const char *dir, std::size_t max_size, allocation_policy policy)
    {
        struct memkind_config *config = memkind_config_new();
        if (config == nullptr)
            throw std::bad_alloc();
        memkind_config_set_path(config, dir);
        memkind_config_set_size(config, max_size);
        memkind_config_set_memory_usage_policy(config, static_cast<memkind_mem_usage_policy>(policy));
        memkind_t kind = nullptr;
        const int error = memkind_create_pmem_with_config(config, &kind);
        memkind_config_delete(config);
        return detail::own(error, kind, "pmem");
    }

    std::shared_ptr<detail::owned_kind> kind_;
};

} // namespace pmem
} // namespace libmemkind

#endif
