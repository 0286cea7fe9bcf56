/* fixed_allocator.h: a C++ allocator (C++11 and later) in memory of the program's. Part of nearfar (docs/reference/memkind.md).
   SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef NEARFAR_FIXED_ALLOCATOR_H
#define NEARFAR_FIXED_ALLOCATOR_H

#include <memkind_detail.h>

namespace libmemkind {
namespace fixed {

template <class T>
class allocator : public detail::owned_allocator<T> {
    using base = detail::owned_allocator<T>;

public:
    template <class U>
    struct rebind {
        using other = allocator<U>;
    };

    allocator(void *addr, std::size_t size) : base(make(addr, size))
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
    static std::shared_ptr<detail::owned_kind> make(void *addr, std::size_t size)
    {
        memkind_t kind = nullptr;
        const int error = memkind_create_fixed(addr, size, &kind);
        return detail::own(error, kind, "fixed");
    }
};

} // namespace fixed
} // namespace libmemkind

#endif
