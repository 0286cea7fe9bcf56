// flags: -std=c++17
// C++ containers beyond near: vector growth and sort, unordered_map, map, list, deque, strings, exceptions thrown across paged frames.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

static uint64_t mix(uint64_t x) {
    x ^= x >> 31; x *= 0x7fb5d329728ea185ull; x ^= x >> 27; x *= 0x81dadef4bc2dd44dull; x ^= x >> 33;
    return x;
}

static uint64_t thrower(const std::vector<uint64_t> &v, size_t at, int depth) {
    std::string local = "frame " + std::to_string(v[at % v.size()] % 1000);
    if (depth == 0) throw std::runtime_error(local);
    return thrower(v, at * 5 + 3, depth - 1) + local.size();
}

int main() {
    std::vector<uint64_t> v;
    for (uint64_t i = 0; i < 12'000'000; i++) v.push_back(mix(i));
    std::sort(v.begin(), v.end());
    printf("vector %zu %016lx sorted %d\n", v.size(), v[v.size() / 3], std::is_sorted(v.begin(), v.end()));
    std::unordered_map<uint64_t, uint64_t> hashed;
    for (uint64_t i = 0; i < 400'000; i++) hashed[mix(i)] = i;
    uint64_t found = 0;
    for (uint64_t i = 0; i < 100'000; i++) {
        auto it = hashed.find(mix(i * 7 % 800'000));
        if (it != hashed.end()) found += it->second;
    }
    for (uint64_t i = 0; i < 400'000; i += 2) hashed.erase(mix(i));
    printf("unordered_map %zu found %lu\n", hashed.size(), found);
    std::list<std::string> names;
    for (int i = 0; i < 100'000; i++) names.push_back("name number " + std::to_string(int64_t{i} * 7919 % 100'000));
    names.sort();
    names.unique();
    printf("list %zu %s %s\n", names.size(), names.front().c_str(), names.back().c_str());
    std::map<uint32_t, std::vector<uint32_t>> groups;
    for (uint32_t i = 0; i < 500'000; i++) groups[mix(i) % 10'000].push_back(i);
    size_t longest = 0;
    for (auto &[key, members] : groups) longest = std::max(longest, members.size());
    printf("map %zu longest %zu\n", groups.size(), longest);
    std::deque<uint64_t> queue;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < 6'000'000; i++) {
        queue.push_back(i);
        if (i % 3 == 0) { sum += queue.front(); queue.pop_front(); }
    }
    printf("deque %zu %lu\n", queue.size(), sum);
    int caught = 0;
    size_t length = 0;
    for (size_t i = 0; i < 3000; i++) {
        try { thrower(v, mix(i), 10); } catch (const std::runtime_error &e) { caught++; length += std::string(e.what()).size(); }
    }
    printf("exceptions %d %zu\n", caught, length);
    auto unique = std::make_unique<uint64_t[]>(4'000'000);
    std::iota(unique.get(), unique.get() + 4'000'000, 0);
    try { std::vector<uint64_t> huge(SIZE_MAX / 32); } catch (const std::bad_alloc &) { puts("bad_alloc"); } catch (const std::length_error &) { puts("length_error"); }
    printf("unique %lu\n", std::accumulate(unique.get(), unique.get() + 4'000'000, uint64_t{0}));
    return 0;
}
