/* fixed_allocator.h: a C++ allocator (C++11 and later) in memory of the program's. Part of nearfar (docs/memkind.md).
   SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef NEARFAR_FIXED_ALLOCATOR_H
#define NEARFAR_FIXED_ALLOCATOR_H

#include <memkind_detail.h>

namespace libmemkind {
namespace fixed {

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

    allocator(void *addr, std::size_t size) : kind_(make(addr, size))
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

    static std::shared_ptr<detail::owned_kind> make(void *addr, std::size_t size)
    {
        memkind_t kind = nullptr;
        const int error = memkind_create_fixed(addr, size, &kind);
        return detail::own(error, kind, "fixed");
    }

    std::shared_ptr<detail::owned_kind> kind_;
};

} // namespace fixed
} // namespace libmemkind

#endif
