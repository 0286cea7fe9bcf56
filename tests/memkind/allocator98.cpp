// The one allocator that is older than C++11.
#include "check.h"
#include <hbw_allocator.h>
#include <map>
#include <vector>

int main()
{
    std::vector<int, hbw::allocator<int> > vector(1000, 7);
    vector.resize(100000, 8);
    CHECK(vector[999] == 7 && vector[99999] == 8);
    std::map<int, int, std::less<int>, hbw::allocator<std::pair<const int, int> > > map;
    map[3] = 4;
    CHECK(map[3] == 4 && hbw::allocator<int>() == hbw::allocator<char>());
    puts("OK");
    return 0;
}
