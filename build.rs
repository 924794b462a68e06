//! Links the addon as Node requires; a build without the `napi` feature needs nothing.

fn main() {
    #[cfg(feature = "napi")]
    napi_build::setup();
}
