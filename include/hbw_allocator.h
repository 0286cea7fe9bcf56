/* hbw_allocator.h: a C++ allocator (C++98 and later) in memory of high bandwidth. Part of nearfar (docs/reference/memkind.md).
   SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef NEARFAR_HBW_ALLOCATOR_H
#define NEARFAR_HBW_ALLOCATOR_H

#include <hbwmalloc.h>

#include <cstddef>
#include <new>

#if __cplusplus >= 201103L
#include <type_traits>
#include <utility>
#define NEARFAR_NOEXCEPT noexcept
#else
#define NEARFAR_NOEXCEPT throw()
#endif

namespace hbw {

template <class T>
class allocator {
public:
    typedef std::size_t size_type;
    typedef std::ptrdiff_t difference_type;
    typedef T *pointer;
    typedef const T *const_pointer;
    typedef T &reference;
    typedef const T &const_reference;
    typedef T value_type;
#if __cplusplus >= 201103L
    typedef std::true_type is_always_equal;
    typedef std::true_type propagate_on_container_move_assignment;
#endif

    template <class U>
    struct rebind {
        typedef hbw::allocator<U> other;
    };

    allocator() NEARFAR_NOEXCEPT
    {
    }

    allocator(const allocator &) NEARFAR_NOEXCEPT
    {
    }

    template <class U>
    allocator(const allocator<U> &) NEARFAR_NOEXCEPT
    {
    }

    allocator &operator=(const allocator &) NEARFAR_NOEXCEPT
    {
        return *this;
    }

    pointer address(reference x) const
    {
        return &x;
    }

    const_pointer address(const_reference x) const
    {
        return &x;
    }

    pointer allocate(size_type n, const void * = 0)
    {
        if (n > max_size()) {
#if __cplusplus >= 201103L
            throw std::bad_array_new_length();
#else
            throw std::bad_alloc();
#endif
        }
        const size_type bytes = n == 0 ? 1 : n * sizeof(T);
        void *block = 0;
#if __cplusplus >= 201103L
        if (alignof(T) > 16) {
            if (hbw_posix_memalign(&block, alignof(T), bytes) != 0)
                block = 0;
        } else
#endif
            block = hbw_malloc(bytes);
        if (!block)
            throw std::bad_alloc();
        return static_cast<pointer>(block);
    }

    void deallocate(pointer p, size_type)
    {
        hbw_free(p);
    }

    size_type max_size() const NEARFAR_NOEXCEPT
    {
        return static_cast<size_type>(-1) / sizeof(T);
    }

#if __cplusplus >= 201103L
    template <class U, class... Args>
    void construct(U *p, Args &&...args)
    {
        ::new (static_cast<void *>(p)) U(std::forward<Args>(args)...);
    }

    template <class U>
    void destroy(U *p)
    {
        p->~U();
    }
#else
    void construct(pointer p, const_reference value)
    {
        ::new (static_cast<void *>(p)) T(value);
    }

    void destroy(pointer p)
    {
        p->~T();
    }
#endif
};

template <class T, class U>
bool operator==(const allocator<T> &, const allocator<U> &) NEARFAR_NOEXCEPT
{
    return true;
}

template <class T, class U>
bool operator!=(const allocator<T> &, const allocator<U> &) NEARFAR_NOEXCEPT
{
    return false;
}

} // namespace hbw

#undef NEARFAR_NOEXCEPT

#endif
