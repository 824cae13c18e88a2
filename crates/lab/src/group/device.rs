//! The disk under a directory.

use std::path::Path;

use drumlin_base::{Error, Result};

/// `major:minor` of the whole disk that holds `dir`: limits are set on disks, not on partitions.
///
/// # Errors
/// `Io`; `NotSupported` when the directory is on no disk, such as one on tmpfs.
pub(super) fn disk_of(dir: &Path) -> Result<String> {
    let stat = rustix::fs::stat(dir).map_err(|error| Error::io("look at", dir, error.into()))?;
    let (major, minor) = (
        rustix::fs::major(stat.st_dev),
        rustix::fs::minor(stat.st_dev),
    );
    let number = format!("{major}:{minor}");
    let block = Path::new("/sys/dev/block").join(&number);
    if !block.exists() {
        let message = format!("{} is on no disk (device {number})", dir.display());
        return Err(Error::new(drumlin_base::ErrorKind::NotSupported, message));
    }
    if !block.join("partition").exists() {
        return Ok(number);
    }
    // A partition's directory is in its disk's.
    let real =
        std::fs::canonicalize(&block).map_err(|error| Error::io("resolve", &block, error))?;
    let disk = real.parent().unwrap_or(&real).join("dev");
    let text = std::fs::read_to_string(&disk).map_err(|error| Error::io("read", &disk, error))?;
    Ok(text.trim().to_owned())
}
