//! Serves an empty plane with Volcano's CRDs until it is stopped: `cargo run -p volcano-apiserver --example serve -- KUBECONFIG [DATA_FILE]`.

#![allow(
    clippy::unwrap_used,
    reason = "a tool for developers stops at the first surprise"
)]

use std::path::PathBuf;
use volcano_apiserver::{Options, Plane};

#[tokio::main(worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let kubeconfig = PathBuf::from(arguments.next().unwrap_or_else(|| "kubeconfig".to_owned()));
    let options = Options {
        crds: volcano_api::crd::all(),
        data_file: arguments.next().map(PathBuf::from),
        ..Options::default()
    };
    let plane = Plane::start(options).await.unwrap();
    let address = plane.serve(&kubeconfig).await.unwrap();
    println!("https://{address}, kubeconfig {}", kubeconfig.display());
    tokio::signal::ctrl_c().await.unwrap();
}
