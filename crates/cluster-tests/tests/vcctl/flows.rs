//! `vcctl jobflow` and `vcctl jobtemplate`.

use crate::transcript::Transcript;
use crate::world;
use insta::assert_snapshot;

#[tokio::test(flavor = "multi_thread")]
async fn flows_and_templates_are_made_shown_and_deleted() {
    let stage = world::set().await;
    let ns = &stage.namespace;
    let flows = stage
        .file(
            "flows.yaml",
            &format!(
                "---\napiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {{name: one, namespace: {ns}}}\nspec: {{flows: [{{name: step}}]}}\n\
                 ---\n# nothing\n---\nmetadata: {{name: Wrong_Name, namespace: {ns}}}\nspec: {{}}\n"
            ),
        )
        .unwrap();
    let templates = stage
        .file("templates.yaml", &format!("metadata: {{name: other, namespace: {ns}}}\nspec: {{minAvailable: 1, tasks: [{{replicas: 1, template: {{spec: {{containers: [{{name: c, image: i}}]}}}}}}]}}\n"))
        .unwrap();
    let wrong = stage.file("wrong.yaml", "kind: Pod\n").unwrap();
    let mut script = Transcript::of(&stage);
    script.run("vcctl jobflow list -n NS");
    script.run("vcctl jobflow list --all-namespaces");
    script.run("vcctl jobflow get -n NS -N nightly");
    script.run("vcctl jobflow get -n NS");
    script.run("vcctl jobflow describe -n NS -N nightly");
    script.run("vcctl jobflow describe -n NS --format json");
    script.run("vcctl jobflow describe -n NS -N nightly -o xml");
    script.run("vcctl jobflow describe -n NS -N nobody");
    script.run_file("vcctl jobflow create -f FILE", &flows);
    script.run_file("vcctl jobflow create -f FILE", &wrong);
    script.run("vcctl jobflow create -f nowhere.yaml");
    script.run_file("vcctl jobflow delete -f FILE", &flows);
    script.run("vcctl jobflow delete -n NS -N nightly");
    script.run("vcctl jobflow delete -n NS -N nightly");
    script.run("vcctl jobflow delete");
    script.run("vcctl jobflow list -n nowhere");
    script.run("vcctl jobtemplate list -n NS");
    script.run_file("vcctl jobtemplate create -f FILE", &templates);
    script.run("vcctl jobtemplate get -n NS -N other");
    script.run("vcctl jobtemplate get");
    script.run("vcctl jobtemplate describe -n NS -N step -o json");
    script.run_file("vcctl jobtemplate delete -f FILE", &templates);
    script.run("vcctl jobtemplate delete -n NS -N step");
    script.run("vcctl jobtemplate delete");
    script.run("vcctl jobtemplate list -n NS");
    assert_snapshot!(script.text());
}
