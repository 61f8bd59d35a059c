//! The configuration file: read at the start, read again when its content changes.
//!
//! The file is usually a mounted ConfigMap, which changes by swapping a symbolic link; it may also be missing for a
//! moment. So the content is compared once a second, and nothing else is relied on.

use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc;
use volcano_engine::config::{SchedulerConf, catalog};

/// A larger file is refused; a ConfigMap holds no more.
const LARGEST: u64 = 1 << 20;
/// How often the file is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// A configuration that can be used.
#[derive(Clone, Debug)]
pub struct Conf {
    /// What it means.
    pub conf: SchedulerConf,
    /// What it says.
    pub text: String,
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Unusable(pub String);

/// What the file held when it was looked at.
pub type Content = Result<String, Unusable>;

/// The configuration at the start.
#[derive(Debug)]
pub struct Start {
    /// What is used.
    pub conf: Conf,
    /// What is wrong with the file, if the default took its place.
    pub wrong: Option<Unusable>,
    /// What the file held: a later change is told from it.
    pub content: Content,
}

/// Reads the file, or takes the default.
///
/// # Errors
/// With `disable_default`, when there is no file or it cannot be used.
pub fn at_start(path: Option<&Path>, disable_default: bool) -> Result<Start, Unusable> {
    let content = match path {
        Some(path) => content(path),
        None => Err(Unusable("--scheduler-conf is not given".to_owned())),
    };
    match parse_content(path, &content) {
        Ok(conf) => Ok(Start {
            conf,
            wrong: None,
            content,
        }),
        Err(wrong) if disable_default => Err(Unusable(format!(
            "{wrong} (--disable-default-scheduler-config is given, so there is nothing to fall back to)"
        ))),
        Err(wrong) => {
            let conf = parse(SchedulerConf::default_text())?;
            Ok(Start {
                conf,
                wrong: path.is_some().then_some(wrong),
                content,
            })
        }
    }
}

fn parse_content(path: Option<&Path>, content: &Content) -> Result<Conf, Unusable> {
    let text = content.as_ref().map_err(Clone::clone)?;
    let place = path.unwrap_or(Path::new("")).display();
    parse(text).map_err(|wrong| Unusable(format!("{place}: {wrong}")))
}

pub(crate) fn content(path: &Path) -> Content {
    let wrong = |problem: String| Unusable(format!("{}: {problem}", path.display()));
    let size = std::fs::metadata(path)
        .map_err(|error| wrong(error.to_string()))?
        .len();
    if size > LARGEST {
        return Err(wrong(format!(
            "{size} bytes; a configuration has at most {LARGEST}"
        )));
    }
    std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))
}

/// Reads a configuration.
///
/// # Errors
/// When it cannot be used.
pub fn parse(text: &str) -> Result<Conf, Unusable> {
    let conf = SchedulerConf::parse(text, catalog::PLANNED_PLUGINS, catalog::ACTIONS)
        .map_err(|error| Unusable(error.to_string()))?;
    Ok(Conf {
        conf,
        text: text.to_owned(),
    })
}

/// Watches the file, which held `last`, and sends each new content once: the configuration, or what is wrong with it. Ends
/// with the receiver.
pub async fn watch(path: PathBuf, mut last: Content, changes: mpsc::Sender<Result<Conf, Unusable>>) {
    loop {
        tokio::select! {
            () = change(&path, &mut last) => {}
            () = changes.closed() => return,
        }
        let conf = parse_content(Some(&path), &last);
        if changes.send(conf).await.is_err() {
            return;
        }
    }
}

/// Waits until a file holds something else than `last`, which it then holds.
pub(crate) async fn change(path: &Path, last: &mut Content) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let now = content(path);
        if now != *last {
            *last = now;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const GOOD: &str = "actions: allocate\ntiers: [{plugins: [{name: gang}]}]\n";
    const BAD: &str = "actions: allocat\n";

    #[test]
    fn a_file_that_cannot_be_used_gives_way_to_the_default_unless_that_is_not_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("conf");
        let Start { conf, wrong, .. } = at_start(None, false).unwrap();
        assert_eq!((conf.text.as_str(), wrong), (SchedulerConf::default_text(), None));
        assert!(at_start(None, true).is_err());
        let Start { conf, wrong, .. } = at_start(Some(&file), false).unwrap();
        assert_eq!(conf.text, SchedulerConf::default_text());
        assert!(wrong.unwrap().0.contains("conf: "));
        fs::write(&file, BAD).unwrap();
        let Start { conf, wrong, .. } = at_start(Some(&file), false).unwrap();
        assert_eq!(conf.text, SchedulerConf::default_text());
        assert!(wrong.unwrap().0.contains("allocat"));
        assert!(
            at_start(Some(&file), true)
                .unwrap_err()
                .0
                .contains("nothing to fall back to")
        );
        fs::write(&file, GOOD).unwrap();
        let Start { conf, wrong, .. } = at_start(Some(&file), true).unwrap();
        assert_eq!((conf.text.as_str(), wrong), (GOOD, None));
        fs::write(&file, "#".repeat(LARGEST as usize + 1)).unwrap();
        let refused = at_start(Some(&file), true).unwrap_err();
        assert!(refused.0.contains("at most"), "{refused}");
    }

    #[tokio::test(start_paused = true)]
    async fn each_new_content_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [("1", GOOD), ("2", BAD), ("3", "actions: enqueue\n")] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("conf"), text).unwrap();
        }
        // As a mounted ConfigMap: the file is reached through a link that is swapped.
        std::os::unix::fs::symlink(at("1"), at("data")).unwrap();
        let swap = |to: &str| {
            std::os::unix::fs::symlink(at(to), at("next")).unwrap();
            fs::rename(at("next"), at("data")).unwrap();
        };
        let (sender, mut changes) = mpsc::channel(8);
        let path = at("data").join("conf");
        let start = at_start(Some(&path), true).unwrap();
        let watching = tokio::spawn(watch(path, start.content, sender));
        tokio::time::sleep(INTERVAL * 3).await;
        assert!(changes.try_recv().is_err(), "nothing changed yet");
        swap("2");
        assert!(changes.recv().await.unwrap().unwrap_err().0.contains("allocat"));
        tokio::time::sleep(INTERVAL * 3).await;
        assert!(changes.try_recv().is_err(), "the same mistake is told once");
        swap("3");
        assert_eq!(changes.recv().await.unwrap().unwrap().text, "actions: enqueue\n");
        fs::remove_file(at("3").join("conf")).unwrap();
        assert!(changes.recv().await.unwrap().is_err());
        fs::write(at("3").join("conf"), GOOD).unwrap();
        assert_eq!(changes.recv().await.unwrap().unwrap().text, GOOD);
        drop(changes);
        watching.await.unwrap();
    }
}
