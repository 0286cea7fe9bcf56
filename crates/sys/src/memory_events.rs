//! Which memory samples this machine's processors can take: PEBS on Intel, IBS on AMD, told from /sys.

use crate::root::Root;
use nearfar_core::profile::hardware::{self, Event};
use std::collections::BTreeMap;

const DEVICES: &str = "/sys/bus/event_source/devices";
/// perf's own choice of precision for loads and stores on Intel: the highest that every generation has for them.
const PRECISE: u8 = 2;
/// Least latency in cycles that a load must have to be sampled, where the machine counts it: every load but those of L1.
const LEAST_LATENCY: u64 = 8;

/// What can be sampled: one event of each unit, loads before stores. Empty where the processor, or the hypervisor, has nothing.
pub fn find(root: &Root) -> Vec<Event> {
    // Hybrid processors have a unit for each kind of core.
    let intel = ["cpu", "cpu_core", "cpu_atom"].into_iter().flat_map(|unit| {
        ["mem-loads", "mem-stores"].into_iter().filter_map(move |name| {
            let mut event = named(root, unit, name)?;
            event.precise = PRECISE;
            if name == "mem-loads" {
                event.auxiliary = named(root, unit, "mem-loads-aux").map(|auxiliary| auxiliary.config);
            }
            if event.config1 != 0 {
                event.config1 = event.config1.max(LEAST_LATENCY);
            }
            Some(event)
        })
    });
    // Ops, not cycles: every op has the same chance. From Linux 6.14 the kernel leaves its own out for us, which users need.
    let amd = unit(root, "ibs_op").and_then(|number| {
        let formats = formats(root, "ibs_op");
        let terms = if formats.contains_key("swfilt") { "cnt_ctl=1,swfilt=1" } else { "cnt_ctl=1" };
        hardware::event(number, terms, &formats).ok()
    });
    intel.chain(amd).collect()
}

fn unit(root: &Root, name: &str) -> Option<u32> {
    root.text(&format!("{DEVICES}/{name}/type"))?.trim().parse().ok()
}

fn named(root: &Root, unit_name: &str, event: &str) -> Option<Event> {
    let terms = root.text(&format!("{DEVICES}/{unit_name}/events/{event}"))?;
    hardware::event(unit(root, unit_name)?, &terms, &formats(root, unit_name)).ok()
}

fn formats(root: &Root, unit_name: &str) -> BTreeMap<String, String> {
    let dir = format!("{DEVICES}/{unit_name}/format");
    let names = root.names(&dir);
    names.into_iter().filter_map(|name| Some((name.clone(), root.text(&format!("{dir}/{name}"))?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> Root {
        let text: String = files.iter().map(|(path, content)| format!("=== {DEVICES}/{path}\n {content}\n")).collect();
        Root::captured(&text).expect("a capture")
    }

    #[test]
    fn intel_amd_and_nothing() {
        let intel = machine(&[
            ("cpu/type", "4"),
            ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
            ("cpu/events/mem-stores", "event=0xd0,umask=0x82"),
            ("cpu/format/event", "config:0-7"),
            ("cpu/format/umask", "config:8-15"),
            ("cpu/format/ldlat", "config1:0-15"),
        ]);
        let found = find(&intel);
        assert_eq!(found.iter().map(|event| event.config).collect::<Vec<_>>(), [0x1cd, 0x82d0]);
        assert_eq!((found[0].config1, found[0].precise, found[0].unit, found[1].config1), (8, 2, 4, 0));
        assert_eq!(found[0].auxiliary, None);
        let newer = machine(&[
            ("cpu/type", "4"),
            ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
            ("cpu/events/mem-loads-aux", "event=0x03,umask=0x82"),
            ("cpu/format/event", "config:0-7"),
            ("cpu/format/umask", "config:8-15"),
            ("cpu/format/ldlat", "config1:0-15"),
        ]);
        assert_eq!(find(&newer)[0].auxiliary, Some(0x8203));
        let filtering =
            machine(&[("ibs_op/type", "11"), ("ibs_op/format/cnt_ctl", "config:19"), ("ibs_op/format/swfilt", "config2:0")]);
        assert_eq!(find(&filtering)[0].config2, 1);
        let amd = machine(&[("ibs_op/type", "11"), ("ibs_op/format/cnt_ctl", "config:19")]);
        assert_eq!(find(&amd), [Event { unit: 11, config: 1 << 19, ..Event::default() }]);
        assert_eq!(find(&machine(&[("cpu/type", "4"), ("cpu/events/mem-loads", "frontend=1")])), []);
        // Whatever this machine has, looking does not fail.
        find(&Root::this());
    }
}
