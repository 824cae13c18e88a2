//! The machine a comparison ran on, in a few lines.

/// Processor, memory and kernel, as Linux tells; what it does not tell is left out.
pub(crate) fn facts() -> Vec<String> {
    let mut lines = Vec::new();
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    if let Some(model) = field("/proc/cpuinfo", "model name") {
        lines.push(format!("{model}, {processors} processors"));
    }
    if let Some(memory) = field("/proc/meminfo", "MemTotal") {
        lines.push(format!("memory {memory}"));
    }
    if let Ok(release) = std::fs::read_to_string("/proc/sys/kernel/osrelease") {
        lines.push(format!("Linux {}", release.trim()));
    }
    if cfg!(debug_assertions) {
        lines.push("built without optimisation: the figures mean nothing".to_owned());
    }
    lines
}

/// The text after `name:` in a file of `/proc`.
fn field(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
