/* pmem_allocator.h: a C++ allocator (C++11 and later) on a file. Part of nearfar (docs/reference/memkind.md).
   SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef NEARFAR_PMEM_ALLOCATOR_H
#define NEARFAR_PMEM_ALLOCATOR_H

#include <memkind_detail.h>

namespace libmemkind {
namespace pmem {

template <class T>
class allocator : public detail::owned_allocator<T> {
    using base = detail::owned_allocator<T>;

public:
    template <class U>
    struct rebind {
        using other = allocator<U>;
    };

    allocator(const char *dir, std::size_t max_size, allocation_policy policy = allocation_policy::DEFAULT)
        : base(make(dir, max_size, policy))
    {
    }

    allocator(const std::string &dir, std::size_t max_size, allocation_policy policy = allocation_policy::DEFAULT)
        : allocator(dir.c_str(), max_size, policy)
    {
    }

    template <class U>
    allocator(const allocator<U> &other) noexcept : base(other)
    {
    }

    template <class U>
    allocator &operator=(const allocator<U> &other) noexcept
    {
        base::share(other);
        return *this;
    }

private:
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
};

} // namespace pmem
} // namespace libmemkind

#endif
