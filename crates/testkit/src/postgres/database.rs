//! One database of a cluster.

use super::cluster::PgCluster;

/// A database that belongs to one test and is dropped with this value, whoever is still connected.
#[derive(Debug)]
pub struct Database<'cluster> {
    cluster: &'cluster PgCluster,
    name: String,
}

impl<'cluster> Database<'cluster> {
    pub(super) fn new(cluster: &'cluster PgCluster, name: String) -> Self {
        Self { cluster, name }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Connection URL, as superuser.
    #[must_use]
    pub fn url(&self) -> String {
        self.cluster.url(&self.name)
    }

    /// The cluster it lives in.
    #[must_use]
    pub fn cluster(&self) -> &'cluster PgCluster {
        self.cluster
    }

    /// Runs SQL statements as superuser and returns what `psql` printed, columns divided by `|`.
    ///
    /// # Panics
    /// When a statement fails, with the server's message.
    pub fn sql(&self, statements: &str) -> String {
        self.cluster.sql(&self.name, statements)
    }

    /// Leaves the database in place under its name: to serve as a template, or to be looked at.
    #[must_use]
    pub fn keep(self) -> String {
        std::mem::ManuallyDrop::new(self).name.clone()
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        // A test may have stopped the server; the database then goes with its cluster.
        let _ = self.cluster.psql("postgres", &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}
