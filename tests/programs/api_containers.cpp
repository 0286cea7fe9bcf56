// nearfar.hpp: standard containers of all kinds, resources, owning pointers, types that only move, large alignments, overflow.
// flags: -std=c++17 -Wextra -I../../include -L../release -lnearfar -Wl,-rpath,$ORIGIN/../release
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <nearfar.hpp>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#define must(condition) ((condition) ? void() : (std::printf("FAILED line %d: %s\n", __LINE__, #condition), std::exit(1)))

template <class T>
using near = nearfar::near_allocator<T>;
template <class T>
using far = nearfar::far_allocator<T>;
using near_string = std::basic_string<char, std::char_traits<char>, near<char>>;

struct Counted {
    static int alive, throw_at;
    int value;
    explicit Counted(int v = 0) : value(v) {
        if (alive == throw_at) throw 1;
        ++alive;
    }
    Counted(const Counted &other) : value(other.value) { ++alive; }
    virtual ~Counted() { --alive; }
};
int Counted::alive = 0;
int Counted::throw_at = -1;
struct Other {
    virtual ~Other() = default;
    long filler = 7;
};
struct Derived : Other, Counted {
    Derived() : Counted(42) {}
};

struct alignas(4096) Page {
    char bytes[4096];
};

static_assert(std::allocator_traits<near<int>>::is_always_equal::value, "");
static_assert(std::is_same<std::allocator_traits<near<int>>::rebind_alloc<long>, near<long>>::value, "");
static_assert(!std::is_convertible<near<int>, far<int>>::value, "tiers do not mix by accident");
static_assert(std::is_nothrow_move_assignable<std::vector<int, near<int>>>::value, "");

static void vectors() {
    std::vector<int, near<int>> a(100000);
    std::iota(a.begin(), a.end(), 0);
    auto b = a;
    b.insert(b.end(), a.rbegin(), a.rend());
    must(b.size() == 200000 && b[150000] == 49999);
    const int *data = b.data();
    std::vector<int, near<int>> c;
    c = std::move(b);
    must(c.data() == data);
    c.swap(a);
    must(a.data() == data);
    std::vector<std::unique_ptr<int>, near<std::unique_ptr<int>>> moving;
    for (int i = 0; i < 1000; i++) moving.emplace_back(new int(i));
    std::rotate(moving.begin(), moving.begin() + 10, moving.end());
    must(*moving[0] == 10);
    std::vector<Page, near<Page>> pages(5);
    must(reinterpret_cast<std::uintptr_t>(pages.data()) % 4096 == 0);
    std::vector<bool, far<bool>> bits(100000, true);
    must(std::count(bits.begin(), bits.end(), true) == 100000);
    const nearfar::where_bytes found = nearfar::where(c);
    must(found.near_bytes + found.far_bytes + found.absent_bytes + found.unknown_bytes == c.size() * sizeof(int));
}

static void containers() {
    std::map<int, near_string, std::less<int>, near<std::pair<const int, near_string>>> words;
    for (int i = 0; i < 10000; i++) words[i * 7919 % 10007] = near_string(static_cast<std::size_t>(i % 300), 'x');
    long total = 0;
    for (const auto &word : words) total += static_cast<long>(word.second.size());
    must(words.size() == 10000 && total == 1485000);
    std::unordered_map<long, double, std::hash<long>, std::equal_to<long>, far<std::pair<const long, double>>> table;
    for (long i = 0; i < 50000; i++) table[i * i] = 0.5;
    must(table.size() == 50000 && table.count(49999L * 49999L) == 1);
    std::list<int, far<int>> list(1000, 3);
    std::list<int, far<int>> more(10, 4);
    list.splice(list.begin(), more);
    must(list.size() == 1010 && list.front() == 4);
    std::deque<Counted, near<Counted>> queue;
    for (int i = 0; i < 3000; i++) queue.emplace_back(i);
    while (queue.size() > 1) queue.pop_front();
    must(queue.front().value == 2999);
    auto shared = std::allocate_shared<Counted>(near<Counted>(), 5);
    must(shared->value == 5);
}

static void resources() {
    std::pmr::vector<std::pmr::string> lines(nearfar::near_resource());
    for (int i = 0; i < 5000; i++) lines.emplace_back("a line that is too long for the string itself, number " + std::to_string(i));
    must(lines[4321].get_allocator().resource() == nearfar::near_resource() && lines[4321].size() > 50);
    must(*nearfar::near_resource() == *nearfar::near_resource() && *nearfar::near_resource() != *nearfar::far_resource());
    std::pmr::monotonic_buffer_resource pool(1 << 20, nearfar::far_resource());
    std::pmr::unordered_map<int, int> map(&pool);
    for (int i = 0; i < 20000; i++) map[i] = -i;
    must(map.at(19999) == -19999);
    void *page = nearfar::near_resource()->allocate(100, 4096);
    must(reinterpret_cast<std::uintptr_t>(page) % 4096 == 0);
    nearfar::near_resource()->deallocate(page, 100, 4096);
}

static void pointers() {
    {
        auto array = nearfar::make_unique<double[]>(nearfar::tier::near, 1000);
        must(array[999] == 0.0);
        auto one = nearfar::make_unique<Derived>(nearfar::tier::far);
        nearfar::unique_ptr<Counted> base = std::move(one); // not where the object begins
        must(base->value == 42 && Counted::alive == 1);
        auto many = nearfar::make_unique<Counted[]>(nearfar::tier::near, 10);
        must(Counted::alive == 11);
    }
    must(Counted::alive == 0);
    Counted::throw_at = 6;
    try {
        nearfar::make_unique<Counted[]>(nearfar::tier::near, 10);
        must(false);
    } catch (int) {
        must(Counted::alive == 0);
    }
    Counted::throw_at = 0;
    try {
        nearfar::make_unique<Counted>(nearfar::tier::near);
        must(false);
    } catch (int) {
    }
    Counted::throw_at = -1;
}

static void refusals() {
    volatile std::size_t count = SIZE_MAX / 8 + 2;
    near<double> allocator;
    try {
        allocator.allocate(count);
        must(false);
    } catch (const std::bad_array_new_length &) {
    }
    try {
        allocator.allocate(count / 32);
        must(false);
    } catch (const std::bad_alloc &) {
    }
    try {
        nearfar::make_unique<long[]>(nearfar::tier::far, count);
        must(false);
    } catch (const std::bad_array_new_length &) {
    }
}

int main() {
    vectors();
    containers();
    must(Counted::alive == 0);
    resources();
    pointers();
    refusals();
    // In cache mode nothing can be placed near.
    must(std::getenv("NEARFAR_JOB") != nullptr || nearfar::capacity(nearfar::tier::near).total_bytes > 0);
    must(!nearfar::describe().empty());
    std::puts("OK");
}
