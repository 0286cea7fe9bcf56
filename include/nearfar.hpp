// nearfar.hpp: C++ containers in near or far memory. C++11 and later; std::pmr needs C++17.
//
//     std::vector<double, nearfar::near_allocator<double>> psi(n);          // in near memory
//     std::pmr::vector<double> rho(n, nearfar::near_resource());            // the same, without a type of its own
//     auto work = nearfar::make_unique<double[]>(nearfar::tier::near, n);
//
// The allocators have no state: all of one tier are equal, and containers with them swap and move in constant time. They throw
// std::bad_alloc (std::bad_array_new_length when a size overflows). Link with -lnearfar; see nearfar.h for what near and far are.
#ifndef NEARFAR_HPP
#define NEARFAR_HPP

#include <nearfar.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#if __cplusplus >= 201703L && defined(__has_include)
#if __has_include(<memory_resource>)
#include <memory_resource>
#define NEARFAR_HAS_PMR 1
#endif
#endif

namespace nearfar {

/// One of the two memories.
enum class tier { near = NEARFAR_NEAR, far = NEARFAR_FAR };

namespace detail {

inline nearfar_tier c_tier(tier where) noexcept { return where == tier::near ? NEARFAR_NEAR : NEARFAR_FAR; }

/// `size` bytes; throws std::bad_alloc.
inline void *allocate(std::size_t size, std::size_t align, tier where) {
    void *block = nullptr;
    if (align <= alignof(std::max_align_t)) {
        block = nearfar_malloc(size, c_tier(where));
    } else if (nearfar_posix_memalign(&block, align, size, c_tier(where)) != 0) {
        block = nullptr;
    }
    if (block == nullptr) throw std::bad_alloc();
    return block;
}

/// `count` times `size`; throws std::bad_array_new_length when no size_t holds that.
inline std::size_t bytes(std::size_t count, std::size_t size) {
    if (count > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / size) throw std::bad_array_new_length();
    return count * size;
}

} // namespace detail

/// Allocates in tier `Where`: for standard containers.
template <class T, tier Where = tier::near>
class allocator {
    static_assert(!std::is_const<T>::value && !std::is_volatile<T>::value, "an allocator of const or volatile objects");

public:
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using propagate_on_container_copy_assignment = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    using is_always_equal = std::true_type;
    template <class U>
    struct rebind {
        using other = allocator<U, Where>;
    };

    allocator() noexcept = default;
    template <class U>
    allocator(const allocator<U, Where> &) noexcept {} // NOLINT: conversions are what rebind is for

    /// Room for `count` objects.
    T *allocate(std::size_t count) {
        return static_cast<T *>(detail::allocate(detail::bytes(count, sizeof(T)), alignof(T), Where));
    }

    void deallocate(T *block, std::size_t) noexcept { nearfar_free(block); }
};

template <class T, class U, tier Where>
bool operator==(const allocator<T, Where> &, const allocator<U, Where> &) noexcept {
    return true;
}

template <class T, class U, tier Where>
bool operator!=(const allocator<T, Where> &, const allocator<U, Where> &) noexcept {
    return false;
}

template <class T>
using near_allocator = allocator<T, tier::near>;
template <class T>
using far_allocator = allocator<T, tier::far>;

/// Destroys an object and gives its memory back: the deleter of `make_unique`.
template <class T>
struct deleter {
    deleter() noexcept = default;
    template <class U, class = typename std::enable_if<std::is_convertible<U *, T *>::value>::type>
    deleter(const deleter<U> &) noexcept { // NOLINT: as std::default_delete
        // A class that is deleted through its base must lie where its base does: there is no operator delete that finds its start.
        static_assert(std::has_virtual_destructor<T>::value || std::is_same<T, U>::value,
                      "deleting through this base class would be undefined: its destructor is not virtual");
    }
    void operator()(T *object) const noexcept {
        void *start = most_derived(object, std::is_polymorphic<T>());
        object->~T();
        nearfar_free(start);
    }

private:
    static void *most_derived(T *object, std::true_type) noexcept { return dynamic_cast<void *>(object); }
    static void *most_derived(T *object, std::false_type) noexcept { return object; }
};

/// The same for an array.
template <class T>
struct deleter<T[]> {
    std::size_t count = 0;
    void operator()(T *objects) const noexcept {
        for (std::size_t left = count; left > 0; --left) objects[left - 1].~T();
        nearfar_free(objects);
    }
};

template <class T>
using unique_ptr = std::unique_ptr<T, deleter<T>>;

/// An object in a tier: `auto grid = nearfar::make_unique<Grid>(nearfar::tier::near, 100, 100);`
template <class T, class... Args>
typename std::enable_if<!std::is_array<T>::value, unique_ptr<T>>::type make_unique(tier where, Args &&...args) {
    struct guard {
        void *block;
        ~guard() { nearfar_free(block); }
    } room{detail::allocate(sizeof(T), alignof(T), where)};
    T *object = ::new (room.block) T(std::forward<Args>(args)...);
    room.block = nullptr;
    return unique_ptr<T>(object);
}

/// An array in a tier, its elements value-initialised: `auto work = nearfar::make_unique<double[]>(nearfar::tier::near, n);`
template <class T>
typename std::enable_if<std::is_array<T>::value && std::extent<T>::value == 0, unique_ptr<T>>::type make_unique(tier where,
                                                                                                               std::size_t count) {
    using element = typename std::remove_extent<T>::type;
    auto *objects = static_cast<element *>(detail::allocate(detail::bytes(count, sizeof(element)), alignof(element), where));
    deleter<T> made;
    unique_ptr<T> array(objects, made); // destroys what exists if a constructor throws
    for (; array.get_deleter().count < count; ++array.get_deleter().count) ::new (objects + array.get_deleter().count) element();
    return array;
}

/// Where the pages of a range are, in bytes.
using where_bytes = struct nearfar_where;
/// How large a tier is.
using capacity_bytes = struct nearfar_capacity;

/// Where `len` bytes from `start` are; all unknown when that cannot be asked.
inline where_bytes where(const void *start, std::size_t len) noexcept {
    where_bytes found = where_bytes();
    if (nearfar_where(start, len, &found) != 0) {
        found = where_bytes();
        found.unknown_bytes = len;
    }
    return found;
}

/// Where the elements of a container with contiguous storage are.
template <class Container>
auto where(const Container &data) noexcept -> decltype(data.data(), data.size(), where_bytes()) {
    return where(data.data(), data.size() * sizeof(*data.data()));
}

/// How large a tier is and what is left of it; zeros when that cannot be asked.
inline capacity_bytes capacity(tier of) noexcept {
    capacity_bytes found = capacity_bytes();
    if (nearfar_capacity(detail::c_tier(of), &found) != 0) found = capacity_bytes();
    return found;
}

/// What near and far are, in one line.
inline std::string describe() { return nearfar_describe(); }

#ifdef NEARFAR_HAS_PMR
namespace detail {

template <tier Where>
class resource final : public std::pmr::memory_resource {
    void *do_allocate(std::size_t size, std::size_t align) override { return detail::allocate(size, align, Where); }
    void do_deallocate(void *block, std::size_t, std::size_t) override { nearfar_free(block); }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
        return this == &other || dynamic_cast<const resource *>(&other) != nullptr;
    }
};

/// Never destroyed: containers in static storage may outlive any other static object.
template <tier Where>
std::pmr::memory_resource *the_resource() noexcept {
    alignas(resource<Where>) static unsigned char room[sizeof(resource<Where>)];
    static std::pmr::memory_resource *const made = ::new (room) resource<Where>;
    return made;
}

} // namespace detail

/// Near memory for std::pmr containers. Lives as long as the process.
inline std::pmr::memory_resource *near_resource() noexcept { return detail::the_resource<tier::near>(); }
/// Far memory for std::pmr containers.
inline std::pmr::memory_resource *far_resource() noexcept { return detail::the_resource<tier::far>(); }
#endif

} // namespace nearfar

#endif
