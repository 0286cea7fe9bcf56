//! What a program does to pages, as a replay with times sees it.

/// One thing that a program did to pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It used a page that was out of view.
    Visit {
        /// Page number; processes lie side by side.
        page: u64,
        /// Thread id.
        thread: u32,
        /// It was written at first, or something of its chunk (64 KiB) was changed before that left view.
        write: bool,
    },
    /// It gave pages up.
    Gone {
        /// First page.
        page: u64,
        /// How many.
        pages: u64,
    },
}
