// What memkind's manuals show of its allocators, with nothing that its headers lack: builds against memkind's headers and ours.
#include "check.h"
#include <fixed_allocator.h>
#include <hbw_allocator.h>
#include <memkind_allocator.h>
#include <memkind_memtier.h>
#include <new>
#include <pmem_allocator.h>
#include <vector>

static char area[16 << 20];

template <class A>
void use(A allocator)
{
    std::vector<int, A> vector(allocator);
    for (int i = 0; i < 1000; i++)
        vector.push_back(i);
    CHECK(vector[999] == 999);
    allocator.deallocate(allocator.allocate(10), 10);
}

int main(int argc, char **argv)
{
    use(hbw::allocator<int>());
    use(libmemkind::static_kind::allocator<int>(libmemkind::kinds::DEFAULT));
    use(libmemkind::pmem::allocator<int>(argc > 1 ? argv[1] : "/tmp", 32 << 20));
    use(libmemkind::fixed::allocator<int>(area, sizeof area));
    puts("OK");
}
