// The C++ allocators in containers. Built against our headers; what memkind's cannot do is marked.
#include "check.h"
#include <fixed_allocator.h>
#include <hbw_allocator.h>
#include <list>
#include <map>
#include <memkind_allocator.h>
#include <memory>
#include <new>
#include <pmem_allocator.h>
#include <string>
#include <vector>

template <class A>
void in_containers(const A &allocator)
{
    typedef typename std::allocator_traits<A> traits;
    typedef typename traits::template rebind_alloc<int> IntAllocator;
    std::vector<int, IntAllocator> vector{IntAllocator(allocator)};
    for (int i = 0; i < 100000; i++)
        vector.push_back(i);
    for (int i = 0; i < 100000; i++)
        CHECK(vector[i] == i);
    std::vector<int, IntAllocator> copy(vector);
    CHECK(copy == vector);
    std::vector<int, IntAllocator> moved(std::move(copy));
    CHECK(moved == vector);
    vector = moved;
    typedef typename traits::template rebind_alloc<std::pair<const int, std::string>> PairAllocator;
    std::map<int, std::string, std::less<int>, PairAllocator> map{std::less<int>(), PairAllocator(allocator)};
    for (int i = 0; i < 1000; i++)
        map.emplace(i, std::to_string(i));
    CHECK(map[999] == "999");
    typedef typename traits::template rebind_alloc<std::list<int>> ListAllocator;
    std::vector<std::list<int>, ListAllocator> nested{ListAllocator(allocator)};
    nested.emplace_back(3, 7);
    CHECK(nested[0].size() == 3);
    // Not with memkind's hbw::allocator.
    typedef typename traits::template rebind_alloc<std::unique_ptr<int>> PointerAllocator;
    std::vector<std::unique_ptr<int>, PointerAllocator> pointers{PointerAllocator(allocator)};
    for (int i = 0; i < 100; i++)
        pointers.emplace_back(new int(i));
    CHECK(*pointers[99] == 99);
    // memkind's other allocators give a small block here.
    try {
        IntAllocator ints(allocator);
        (void)traits::template rebind_traits<int>::allocate(ints, static_cast<std::size_t>(-1) / sizeof(int) + 2);
        CHECK(!"an overflow is refused");
    } catch (const std::bad_alloc &) {
    }
    struct alignas(256) Wide {
        char bytes[256];
    };
    typename traits::template rebind_alloc<Wide> wide(allocator);
    Wide *block = wide.allocate(3);
    CHECK(reinterpret_cast<std::size_t>(block) % 256 == 0);
    wide.deallocate(block, 3);
    CHECK(IntAllocator(allocator) == IntAllocator(PairAllocator(allocator)));
    CHECK(!(IntAllocator(allocator) != IntAllocator(allocator)));
}

static char area[16 << 20];

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "/tmp";
    in_containers(hbw::allocator<int>());
    in_containers(libmemkind::static_kind::allocator<int>(libmemkind::kinds::HBW));
    in_containers(libmemkind::static_kind::allocator<int>(libmemkind::kinds::DEFAULT));
    CHECK(libmemkind::static_kind::allocator<int>(libmemkind::kinds::HBW)
        != libmemkind::static_kind::allocator<int>(libmemkind::kinds::REGULAR));
    in_containers(libmemkind::pmem::allocator<int>(dir, 32 << 20));
    in_containers(libmemkind::pmem::allocator<int>(std::string(dir), 32 << 20, libmemkind::allocation_policy::CONSERVATIVE));
    in_containers(libmemkind::fixed::allocator<int>(area, sizeof area));
    try {
        libmemkind::pmem::allocator<int> small(dir, 1);
        CHECK(!"too small a file is refused");
    } catch (const std::invalid_argument &) {
    }
    puts("OK");
}
