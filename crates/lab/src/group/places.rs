//! Where the system keeps its control groups.

use std::path::{Path, PathBuf};

/// The two versions of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// A hierarchy for each controller.
    One,
    /// One hierarchy for all.
    Two,
}

/// A controller's hierarchy, and this process's group in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) version: Version,
    /// Where the hierarchy is mounted.
    pub(super) root: PathBuf,
    /// This process's group, below `root`. Inside a container the path may be one of the host's and
    /// not be there.
    pub(super) own: PathBuf,
}

impl Place {
    /// The group and its ancestors, the innermost first: a new group goes into the first that takes
    /// it.
    pub(super) fn parents(&self) -> impl Iterator<Item = PathBuf> {
        self.own.ancestors().map(|group| self.root.join(group))
    }
}

/// The hierarchy of `controller` by the texts of `/proc/mounts` and `/proc/self/cgroup`. The first
/// version is preferred where it has the controller, since then the second has not.
pub(super) fn place(controller: &str, mounts: &str, groups: &str) -> Option<Place> {
    // device, mount point, type, options, ...
    let mount = |kind: &str, option: Option<&str>| {
        mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (point, found, options) = (words.next()?, words.next()?, words.next()?);
            let has = |wanted: &str| options.split(',').any(|option| option == wanted);
            (found == kind && option.is_none_or(has)).then(|| PathBuf::from(point))
        })
    };
    // number:controllers:path; no controllers for the second version.
    let own = |wanted: &dyn Fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            wanted(controllers).then(|| Path::new(path.trim_start_matches('/')).to_owned())
        })
    };
    let named = |controllers: &str| controllers.split(',').any(|name| name == controller);
    let first = mount("cgroup", Some(controller)).zip(own(&named));
    if let Some((root, own)) = first {
        return Some(Place {
            version: Version::One,
            root,
            own,
        });
    }
    let (root, own) = mount("cgroup2", None).zip(own(&str::is_empty))?;
    Some(Place {
        version: Version::Two,
        root,
        own,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
        cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n\
        cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
        cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";
    const SECOND: &str = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";

    #[test]
    fn a_controller_of_the_first_version_has_a_hierarchy_of_its_own() {
        let found = place("memory", FIRST, "4:memory:/a/b\n0::/\n").expect("a place");
        assert_eq!(found.version, Version::One);
        let parents: Vec<PathBuf> = found.parents().collect();
        let expected = [
            "/sys/fs/cgroup/memory/a/b",
            "/sys/fs/cgroup/memory/a",
            "/sys/fs/cgroup/memory/",
        ];
        assert_eq!(parents, expected.map(PathBuf::from));
    }

    #[test]
    fn where_there_is_one_hierarchy_it_has_every_controller() {
        let found = place("memory", SECOND, "0::/user.slice\n").expect("a place");
        assert_eq!(
            (found.version, found.own),
            (Version::Two, PathBuf::from("user.slice"))
        );
        assert_eq!(place("memory", "proc /proc proc rw 0 0\n", "0::/\n"), None);
    }
}
