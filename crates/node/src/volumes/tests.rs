use super::*;
use serde_json::{Value, from_value, json};

fn pod(volumes: Value) -> Pod {
    from_value(json!({
        "metadata": {"name": "p", "namespace": "ns", "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c"}], "volumes": volumes},
    }))
    .unwrap()
}

fn objects() -> Objects {
    Objects {
        config_maps: BTreeMap::from([(
            "m".to_owned(),
            from_value(json!({"data": {"k": "v", "l": "w"}, "binaryData": {"b": "AAE="}})).unwrap(),
        )]),
        secrets: BTreeMap::from([(
            "s".to_owned(),
            from_value(json!({"data": {"p": "c2VjcmV0"}})).unwrap(),
        )]),
    }
}

fn made(volumes: Value) -> Result<(tempfile::TempDir, Volumes), String> {
    let place = tempfile::tempdir().unwrap();
    let made = make(
        &pod(volumes),
        &objects(),
        &Claims::default(),
        &Facts::default(),
        place.path(),
    )?;
    Ok((place, made))
}

fn text(volumes: &Volumes, volume: &str, file: &str) -> Option<String> {
    let Source::Path(path) = &volumes[volume].source else {
        return None;
    };
    fs::read_to_string(path.join(file)).ok()
}

#[test]
fn objects_become_files() {
    let (_place, volumes) = made(json!([
        {"name": "m", "configMap": {"name": "m", "items": [{"key": "k", "path": "x/y", "mode": 0o400}]}},
        {"name": "all", "configMap": {"name": "m"}},
        {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o600}},
        {"name": "d", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "none", "configMap": {"name": "none", "optional": true}},
        {"name": "p", "projected": {"sources": [
            {"configMap": {"name": "m", "items": [{"key": "l", "path": "l"}]}},
            {"secret": {"name": "s"}},
        ]}},
    ]))
    .unwrap();
    let found = |volume, file| text(&volumes, volume, file);
    assert_eq!(found("m", "x/y").as_deref(), Some("v"));
    assert_eq!(found("m", "l"), None);
    assert_eq!(found("all", "b").as_deref(), Some("\0\u{1}"));
    assert_eq!(found("s", "p").as_deref(), Some("secret"));
    assert_eq!(found("d", "labels").as_deref(), Some("a=\"b\""));
    assert_eq!(
        (found("p", "l").as_deref(), found("p", "p").as_deref()),
        (Some("w"), Some("secret"))
    );
    let Source::Path(secret) = &volumes["s"].source else {
        panic!()
    };
    assert_eq!(
        fs::metadata(secret.join("p")).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn what_cannot_be_had_is_named() {
    let cases = [
        (
            json!([{"name": "v", "configMap": {"name": "x"}}]),
            "configmap \"x\" not found",
        ),
        (
            json!([{"name": "v", "secret": {"secretName": "x"}}]),
            "secret \"x\" not found",
        ),
        (
            json!([{"name": "v", "configMap": {"name": "m", "items": [{"key": "x", "path": "x"}]}}]),
            "references non-existent config key: x",
        ),
        (
            json!([{"name": "v", "nfs": {"server": "a", "path": "/"}}]),
            "no volumes of this kind",
        ),
        (
            json!([{"name": "v", "hostPath": {"path": "a/../b"}}]),
            "must be absolute",
        ),
        (
            json!([{"name": "v", "hostPath": {"path": "/dev/null", "type": "Directory"}}]),
            "is not a Directory",
        ),
        (
            json!([{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]),
            "persistentvolumeclaim \"x\"",
        ),
    ];
    for (volumes, expected) in cases {
        let problem = made(volumes).unwrap_err();
        assert!(
            problem.starts_with("MountVolume.SetUp failed for volume \"v\" : "),
            "{problem}"
        );
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn a_host_path_that_is_not_there_is_made_unless_its_type_says_otherwise() {
    let place = tempfile::tempdir().unwrap();
    let (path, strict) = (place.path().join("a/b"), place.path().join("c"));
    let host =
        |path: &std::path::Path, kind: &str| json!([{"name": "v", "hostPath": {"path": path, "type": kind}}]);
    made(host(&path, "")).unwrap();
    assert!(path.is_dir());
    made(host(&strict, "Directory")).unwrap_err();
    assert!(!strict.exists());
}

#[test]
fn mounts_stay_within_their_volumes() {
    let (_place, volumes) = made(json!([{"name": "e", "emptyDir": {}}])).unwrap();
    let Source::Path(volume) = volumes["e"].source.clone() else {
        panic!()
    };
    std::os::unix::fs::symlink("/etc", volume.join("out")).unwrap();
    let values = BTreeMap::from([("N".to_owned(), "n".to_owned())]);
    let mount = |mount: Value| {
        let container = from_value(json!({"name": "c", "volumeMounts": [mount]})).unwrap();
        mounts(&container, &volumes, &values)
    };
    let found =
        mount(json!({"name": "e", "mountPath": "/x", "subPathExpr": "a/$(N)", "readOnly": true})).unwrap();
    let expected = Mount {
        source: Source::Path(volume.canonicalize().unwrap().join("a/n")),
        target: "/x".into(),
        read_only: true,
    };
    assert_eq!(found, [expected]);
    for bad in [
        json!({"name": "e", "mountPath": "/x", "subPath": "../y"}),
        json!({"name": "e", "mountPath": "/x", "subPath": "out"}),
        json!({"name": "e", "mountPath": "x"}),
        json!({"name": "other", "mountPath": "/x"}),
    ] {
        assert!(mount(bad.clone()).is_err(), "{bad}");
    }
}
