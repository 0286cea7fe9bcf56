// A Java program with a 1 GiB heap: arrays that survive collections, objects, strings, threads; run with -Xmx1g.
import java.util.*;
import java.util.stream.*;

public class HeapArrays {
    static long mix(long x) {
        x ^= x >>> 31; x *= 0x7fb5d329728ea185L; x ^= x >>> 27; x *= 0x81dadef4bc2dd44dL; return x ^ (x >>> 33);
    }

    public static void main(String[] arguments) throws Exception {
        int blocks = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 400;
        List<long[]> kept = new ArrayList<>();
        for (int b = 0; b < blocks; b++) { // 1 MiB each
            long[] block = new long[131072];
            for (int i = 0; i < block.length; i++) block[i] = mix(b * 131072L + i);
            kept.add(block);
            if (b % 10 == 0) { byte[][] garbage = new byte[20][]; for (int i = 0; i < 20; i++) garbage[i] = new byte[500_000]; }
        }
        long bad = 0, sum = 0;
        for (int b = 0; b < kept.size(); b++) {
            long[] block = kept.get(b);
            for (int i = 0; i < block.length; i++) { if (block[i] != mix(b * 131072L + i)) bad++; sum += block[i]; }
        }
        System.out.println("arrays " + kept.size() + " bad " + bad + " sum " + sum);
        Map<String, Integer> counts = new HashMap<>();
        for (int i = 0; i < 300_000; i++) counts.merge("key" + (mix(i) & 0xffff), 1, Integer::sum);
        System.out.println("map " + counts.size() + " " + counts.values().stream().mapToInt(Integer::intValue).sum());
        Thread[] threads = new Thread[4];
        long[] sums = new long[4];
        for (int t = 0; t < 4; t++) {
            int id = t;
            threads[t] = new Thread(() -> { for (int b = id; b < kept.size(); b += 4) for (long x : kept.get(b)) sums[id] += x; });
            threads[t].start();
        }
        for (Thread t : threads) t.join();
        System.out.println("threads " + LongStream.of(sums).sum());
        kept.subList(0, kept.size() / 2).clear();
        System.gc();
        long rest = 0;
        for (long[] block : kept) rest += LongStream.of(block).sum();
        System.out.println("rest " + rest);
        try { Object nothing = null; nothing.hashCode(); } catch (NullPointerException e) { System.out.println("null caught"); }
        try { long[] huge = new long[400_000_000]; System.out.println(huge.length); } catch (OutOfMemoryError e) { System.out.println("out of memory caught"); }
    }
}
