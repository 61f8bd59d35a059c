//! Connections to an API server: kube's, with small writes sent at once.

use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt as _;
use tower::{BoxError, ServiceBuilder};

/// A client of the configured server.
///
/// kube's own lets the kernel hold back a small write until the one before is acknowledged, which the other side puts
/// off for 40 ms: the first request of each connection waits so long behind the end of the handshake.
///
/// # Errors
/// When the configuration cannot be used.
pub fn client(config: kube::Config) -> Result<kube::Client, kube::Error> {
    if config.proxy_url.is_some() {
        return kube::Client::try_from(config);
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false); // https is the business of the connector around it.
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    let connector = config.rustls_https_connector_with_connector(tcp)?;
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(legacy::Client::builder(TokioExecutor::new()).build(connector));
    Ok(kube::Client::new(service, config.default_namespace))
}
