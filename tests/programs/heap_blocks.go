// Go with cgo, so that its heap comes from the C library's mmap: slices, maps, goroutines, and memory of malloc beside them.
package main

/*
#include <stdint.h>
#include <stdlib.h>

static uint64_t fill(uint64_t *words, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) words[i] = i * 0x9e3779b97f4a7c15u;
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < count; i++) sum += words[i] ^ round;
    return sum;
}
*/
import "C"

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"sort"
	"sync"
)

func mix(x uint64) uint64 {
	x ^= x >> 31
	x *= 0x7fb5d329728ea185
	x ^= x >> 27
	return x ^ (x >> 33)
}

func main() {
	blocks := [][]uint64{}
	for b := 0; b < 96; b++ { // 1 MiB each
		block := make([]uint64, 131072)
		for i := range block {
			block[i] = mix(uint64(b*131072 + i))
		}
		blocks = append(blocks, block)
	}
	names := map[string][]int{}
	for i := 0; i < 100000; i++ {
		key := fmt.Sprintf("key%d", mix(uint64(i))%20000)
		names[key] = append(names[key], i)
	}
	count := C.size_t(16 << 20)
	words := (*C.uint64_t)(C.malloc(count * 8))
	fmt.Println("malloc", uint64(C.fill(words, count)))
	var group sync.WaitGroup
	sums := make([]uint64, 4)
	for t := range sums {
		group.Add(1)
		go func(t int) {
			defer group.Done()
			for b := t; b < len(blocks); b += 4 {
				for _, x := range blocks[b] {
					sums[t] += x
				}
			}
		}(t)
	}
	group.Wait()
	fmt.Println("sums", sums)
	keys := []string{}
	for key := range names {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	digest := sha256.New()
	for _, key := range keys {
		fmt.Fprint(digest, key, names[key])
	}
	fmt.Printf("map %x\n", digest.Sum(nil))
	blocks = blocks[48:]
	runtime.GC()
	fmt.Println("malloc again", uint64(C.fill(words, count)), len(blocks))
}
