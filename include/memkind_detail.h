/* Parts that the C++ allocators on kinds share; not to be included by programs. Part of nearfar (docs/reference/memkind.md).
   SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef NEARFAR_MEMKIND_DETAIL_H
#define NEARFAR_MEMKIND_DETAIL_H

#include <memkind.h>

#include <cstddef>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace libmemkind {

enum class allocation_policy {
    DEFAULT = MEMKIND_MEM_USAGE_POLICY_DEFAULT,
    CONSERVATIVE = MEMKIND_MEM_USAGE_POLICY_CONSERVATIVE,
    MAX
};

namespace detail {

/* Room for n objects. More bytes than there are addresses is an error rather than a small block. */
template <class T>
T *allocate(memkind_t kind, std::size_t n)
{
    if (n > static_cast<std::size_t>(-1) / sizeof(T))
        throw std::bad_array_new_length();
    const std::size_t bytes = n == 0 ? 1 : n * sizeof(T);
    void *block = nullptr;
    if (alignof(T) <= 16)
        block = memkind_malloc(kind, bytes);
    else if (memkind_posix_memalign(kind, &block, alignof(T), bytes) != 0)
        block = nullptr;
    if (block == nullptr)
        throw std::bad_alloc();
    return static_cast<T *>(block);
}

/* A kind that goes with the last allocator that uses it. */
class owned_kind {
public:
    explicit owned_kind(memkind_t kind) : kind_(kind)
    {
    }
    owned_kind(const owned_kind &) = delete;
    owned_kind &operator=(const owned_kind &) = delete;
    ~owned_kind()
    {
        memkind_destroy_kind(kind_);
    }
    memkind_t get() const
    {
        return kind_;
    }

private:
    memkind_t kind_;
};

/* The kind that was made, or an exception that says why not. */
inline std::shared_ptr<owned_kind> own(int error, memkind_t kind, const char *what)
{
    if (error == MEMKIND_SUCCESS)
        return std::make_shared<owned_kind>(kind);
    char message[MEMKIND_ERROR_MESSAGE_SIZE];
    memkind_error_message(error, message, sizeof message);
    const std::string text = std::string("cannot make the ") + what + " kind: " + message + " (" + std::to_string(error) + ")";
    if (error == MEMKIND_ERROR_INVALID)
        throw std::invalid_argument(text);
    throw std::runtime_error(text);
}

/* What allocators on kinds of their own have in common. Copies share the kind. */
template <class T>
class owned_allocator {
public:
    using value_type = T;
    using pointer = T *;
    using const_pointer = const T *;
    using reference = T &;
    using const_reference = const T &;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;

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
    bool operator==(const owned_allocator<U> &other) const noexcept
    {
        return kind_->get() == other.kind_->get();
    }

    template <class U>
    bool operator!=(const owned_allocator<U> &other) const noexcept
    {
        return !(*this == other);
    }

protected:
    explicit owned_allocator(std::shared_ptr<owned_kind> kind) : kind_(std::move(kind))
    {
    }

    template <class U>
    explicit owned_allocator(const owned_allocator<U> &other) noexcept : kind_(other.kind_)
    {
    }

    template <class U>
    void share(const owned_allocator<U> &other) noexcept
    {
        kind_ = other.kind_;
    }

private:
    template <class U>
    friend class owned_allocator;

    std::shared_ptr<owned_kind> kind_;
};

} // namespace detail
} // namespace libmemkind

#endif
