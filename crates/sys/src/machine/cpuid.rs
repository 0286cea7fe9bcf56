//! The CPUID instruction of x86: a second word on the last-level cache, and the name of the hypervisor. Nothing elsewhere.

/// One last-level cache, as the processor describes it.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastLevel {
    pub(super) level: u32,
    pub(super) bytes: u64,
    /// CPUs that share it, at the most.
    pub(super) shared_by: u32,
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::LastLevel;
    use std::arch::x86_64::{__cpuid_count, CpuidResult};

    fn cpuid(leaf: u32, part: u32) -> CpuidResult {
        // SAFETY: every x86-64 processor has the instruction, and it changes nothing. (Safe by itself in newer compilers.)
        #[allow(unused_unsafe)]
        unsafe {
            __cpuid_count(leaf, part)
        }
    }

    fn text(registers: &[u32]) -> String {
        let bytes: Vec<u8> = registers.iter().flat_map(|register| register.to_le_bytes()).collect();
        String::from_utf8_lossy(&bytes).trim_matches(|c: char| c == '\0' || c.is_whitespace()).to_owned()
    }

    fn is_amd() -> bool {
        let first = cpuid(0, 0);
        matches!(text(&[first.ebx, first.edx, first.ecx]).as_str(), "AuthenticAMD" | "HygonGenuine")
    }

    /// Leaf 4, or 0x8000001D with AMD (Intel SDM volume 2, AMD APM volume 3): one cache for each part.
    pub(in super::super) fn last_level() -> Option<LastLevel> {
        let leaf = if is_amd() { 0x8000_001d } else { 4 };
        if cpuid(leaf & 0x8000_0000, 0).eax < leaf {
            return None;
        }
        let caches = (0..16).map(|part| cpuid(leaf, part)).take_while(|cache| cache.eax & 31 != 0);
        let data = caches.filter(|cache| cache.eax & 31 != 2);
        let last = data.max_by_key(|cache| cache.eax >> 5 & 7)?;
        let (ways, parts, line) = ((last.ebx >> 22) + 1, (last.ebx >> 12 & 0x3ff) + 1, (last.ebx & 0xfff) + 1);
        let bytes = [parts.into(), line.into(), u64::from(last.ecx) + 1].into_iter().fold(u64::from(ways), u64::saturating_mul);
        Some(LastLevel { level: last.eax >> 5 & 7, bytes, shared_by: (last.eax >> 14 & 0xfff) + 1 })
    }

    /// From the signature at leaf 0x40000000.
    pub(in super::super) fn hypervisor_name() -> Option<String> {
        if cpuid(1, 0).ecx >> 31 == 0 {
            return None;
        }
        let leaf = cpuid(0x4000_0000, 0);
        let signature = text(&[leaf.ebx, leaf.ecx, leaf.edx]);
        let known = match signature.as_str() {
            "KVMKVMKVM" => "KVM",
            "TCGTCGTCGTCG" => "QEMU without KVM",
            "VMwareVMware" => "VMware",
            "Microsoft Hv" => "Hyper-V",
            "XenVMMXenVMM" => "Xen",
            other if other.len() > 3 && other.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') => other,
            _ => return None,
        };
        Some(known.to_owned())
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{hypervisor_name, last_level};

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn last_level() -> Option<LastLevel> {
    None
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn hypervisor_name() -> Option<String> {
    None
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    #[test]
    fn a_cache_is_described_sanely() {
        if let Some(last) = super::last_level() {
            assert!((1..=4).contains(&last.level) && last.bytes >= 1 << 14 && last.shared_by > 0, "{last:?}");
        }
    }
}
