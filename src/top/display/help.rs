//! The page of help on the screen: what `nearfar top --help` says at more length.

/// Its lines, which fit into 80 columns and 21 lines.
pub const LINES: [&str; 20] = [
    "up, down   select a job (also k, j)         s   sort by the next column",
    "p          pause, and go on                 r   turn the order round",
    "?          this help                        q   end (also Ctrl-C)",
    "",
    "NEAR/BUDGET  near memory in use, and how much the job may use",
    "HIT%         page faults on existing data that did not wait for far",
    "MISS/s       those that did, per second",
    "IN, OUT      read from far and written to it, in 1,000,000 bytes per second",
    "WAIT%        time that threads waited for the pager; 100 is one thread",
    "             that only waits, and several threads can wait at once",
    "GRAIN        most reads that threads waited for brought so much, or less",
    "BUSY%        time in which far had something to do (screens from 105 columns)",
    "DEPTH        reads and writes under way while it had",
    "PROCS, FAR   processes that nearfar manages; the far tier",
    "HEAT, NEAR%  an object's share of the misses; those of its pages in view",
    "A dash: nothing of the kind happened, or it cannot be known.",
    "Charts: one look each, the latest at the right; the highest bar is the",
    "highest value since top was started (100 % for hits).",
    "",
    "A low HIT% with a high WAIT%: more near often helps. See man nearfar-top.",
];

#[cfg(test)]
mod tests {
    #[test]
    fn it_fits() {
        assert!(super::LINES.iter().all(|line| line.chars().count() <= 78));
    }
}
