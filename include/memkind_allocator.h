/* memkind_allocator.h: a C++ allocator (C++11 and later) on the kinds that are there from the start. Part of nearfar (docs/reference/memkind.md).
   SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef NEARFAR_MEMKIND_ALLOCATOR_H
#define NEARFAR_MEMKIND_ALLOCATOR_H

#include <memkind_detail.h>

namespace libmemkind {

enum class kinds {
    DEFAULT = 0,
    HUGETLB = 1,
    INTERLEAVE = 2,
    HBW = 3,
    HBW_ALL = 4,
    HBW_HUGETLB = 5,
    HBW_ALL_HUGETLB = 6,
    HBW_PREFERRED = 7,
    HBW_PREFERRED_HUGETLB = 8,
    HBW_INTERLEAVE = 9,
    REGULAR = 10,
    DAX_KMEM = 11,
    DAX_KMEM_ALL = 12,
    DAX_KMEM_PREFERRED = 13,
    DAX_KMEM_INTERLEAVE = 14,
    HIGHEST_CAPACITY = 15,
    HIGHEST_CAPACITY_PREFERRED = 16,
    HIGHEST_CAPACITY_LOCAL = 17,
    HIGHEST_CAPACITY_LOCAL_PREFERRED = 18,
    LOWEST_LATENCY_LOCAL = 19,
    LOWEST_LATENCY_LOCAL_PREFERRED = 20,
    HIGHEST_BANDWIDTH_LOCAL = 21,
    HIGHEST_BANDWIDTH_LOCAL_PREFERRED = 22
};

namespace detail {

inline memkind_t kind_of(kinds kind)
{
    switch (kind) {
        case kinds::DEFAULT: return MEMKIND_DEFAULT;
        case kinds::HUGETLB: return MEMKIND_HUGETLB;
        case kinds::INTERLEAVE: return MEMKIND_INTERLEAVE;
        case kinds::HBW: return MEMKIND_HBW;
        case kinds::HBW_ALL: return MEMKIND_HBW_ALL;
        case kinds::HBW_HUGETLB: return MEMKIND_HBW_HUGETLB;
        case kinds::HBW_ALL_HUGETLB: return MEMKIND_HBW_ALL_HUGETLB;
        case kinds::HBW_PREFERRED: return MEMKIND_HBW_PREFERRED;
        case kinds::HBW_PREFERRED_HUGETLB: return MEMKIND_HBW_PREFERRED_HUGETLB;
        case kinds::HBW_INTERLEAVE: return MEMKIND_HBW_INTERLEAVE;
        case kinds::REGULAR: return MEMKIND_REGULAR;
        case kinds::DAX_KMEM: return MEMKIND_DAX_KMEM;
        case kinds::DAX_KMEM_ALL: return MEMKIND_DAX_KMEM_ALL;
        case kinds::DAX_KMEM_PREFERRED: return MEMKIND_DAX_KMEM_PREFERRED;
        case kinds::DAX_KMEM_INTERLEAVE: return MEMKIND_DAX_KMEM_INTERLEAVE;
        case kinds::HIGHEST_CAPACITY: return MEMKIND_HIGHEST_CAPACITY;
        case kinds::HIGHEST_CAPACITY_PREFERRED: return MEMKIND_HIGHEST_CAPACITY_PREFERRED;
        case kinds::HIGHEST_CAPACITY_LOCAL: return MEMKIND_HIGHEST_CAPACITY_LOCAL;
        case kinds::HIGHEST_CAPACITY_LOCAL_PREFERRED: return MEMKIND_HIGHEST_CAPACITY_LOCAL_PREFERRED;
        case kinds::LOWEST_LATENCY_LOCAL: return MEMKIND_LOWEST_LATENCY_LOCAL;
        case kinds::LOWEST_LATENCY_LOCAL_PREFERRED: return MEMKIND_LOWEST_LATENCY_LOCAL_PREFERRED;
        case kinds::HIGHEST_BANDWIDTH_LOCAL: return MEMKIND_HIGHEST_BANDWIDTH_LOCAL;
        case kinds::HIGHEST_BANDWIDTH_LOCAL_PREFERRED: return MEMKIND_HIGHEST_BANDWIDTH_LOCAL_PREFERRED;
    }
    throw std::runtime_error("Unknown libmemkind::kinds");
}

} // namespace detail

namespace static_kind {

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

    explicit allocator(kinds kind) : kind_(detail::kind_of(kind))
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
        return detail::allocate<T>(kind_, n);
    }

    void deallocate(pointer p, size_type) const
    {
        memkind_free(kind_, p);
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
        return kind_ == other.kind_;
    }

    template <class U>
    bool operator!=(const allocator<U> &other) const noexcept
    {
        return kind_ != other.kind_;
    }

private:
    template <class U>
    friend class allocator;

    memkind_t kind_;
};

} // namespace static_kind
} // namespace libmemkind

#endif
