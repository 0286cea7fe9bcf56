//! The kernel reads and writes paged memory on behalf of the program.

use crate::util::TestProgram;

fn paged(name: &str) {
    TestProgram::source(name).same().ok().paged();
}

programs! {
    one_read_and_one_write_of_a_big_file: TestProgram::source("whole_file.c").args(["512M"]).near("128M").same().ok().paged();
    direct_io_under_eviction: TestProgram::source("direct_io.c").near("96M").same().ok().paged();
    messages_over_sockets_and_pipes: paged("socket_messages.c");
    memory_of_another_process: paged("cross_memory.c");
    small_structures: paged("small_structs.c");
}
