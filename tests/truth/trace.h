// The visits of pages by a program of this directory, all of them in order: words of 64 bits on standard output. The program is the
// same, compiled with TRUTH_TRACE: SEE(a[i]) tells of the page of a[i], and is a[i]. `nearfar bench profile misses` reads it.
#ifndef TRACE_H
#define TRACE_H
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  TRACE_OBJECT = 1,  // This << 56 | pages, then the first page, then four words of name.
  TRACE_GONE,        // This << 56 | pages, then the first page: they hold nothing any more.
  TRACE_ROUND,       // This << 56: a round begins.
  TRACE_END,         // This << 56: nothing was lost.
};                   // Other words are numbers of pages that are visited.
static uint64_t trace_words[1 << 13], trace_last;
static size_t trace_count;

static void __attribute__((noinline)) trace_flush(void) {
  size_t all = trace_count * sizeof *trace_words;
  for (size_t done = 0; done < all;) {
    ssize_t some = write(1, (char *)trace_words + done, all - done);
    if (some < 0) _exit(3);
    done += some;
  }
  trace_count = 0;
}
static inline void trace_word(uint64_t word) {
  if (trace_count == sizeof trace_words / sizeof *trace_words) trace_flush();
  trace_words[trace_count++] = word;
}
static inline void trace_range(int what, uintptr_t address, size_t bytes) {
  uint64_t first = address >> 12, last = (address + bytes - 1) >> 12;
  trace_word((uint64_t)what << 56 | (last - first + 1));
  trace_word(first);
  trace_last = 0;
}
static inline void *trace_see(const void *address) {
  uint64_t page = (uintptr_t)address >> 12;
  if (page != trace_last) trace_word(trace_last = page);
  return (void *)address;
}
static inline void trace_object(const char *name, const void *address, size_t bytes) {
  uint64_t words[4] = {0};
  strncpy((char *)words, name, sizeof words - 1);
  trace_range(TRACE_OBJECT, (uintptr_t)address, bytes);
  for (int i = 0; i < 4; i++) trace_word(words[i]);
}
// After free(): only what went back to the kernel is gone.
static inline void trace_gone(uintptr_t address, size_t bytes) {
  unsigned char there;
  void *page = (void *)(((address >> 12) + 1) << 12);
  if (mincore(page, 1, &there) && errno == ENOMEM) trace_range(TRACE_GONE, address, bytes);
}
static inline void trace_end(void) {
  trace_word((uint64_t)TRACE_END << 56);
  trace_flush();
}

#define SEE(element) (*(__typeof__(&(element)))trace_see(&(element)))
// A block that was just allocated, with the name that truth_of has for it; and one that was just freed.
#define SEE_OBJECT(name, address, bytes) trace_object(name, address, bytes)
#define SEE_GONE(address, bytes) trace_gone((uintptr_t)(address), bytes)
#define SEE_ROUND() trace_word((uint64_t)TRACE_ROUND << 56)
#define SEE_END() trace_end()
#endif
