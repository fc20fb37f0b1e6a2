#!/usr/bin/env bash
# Runs every test of the workspace, documentation examples included. Installs what they need beyond Rust.
#
#   scripts/test.sh                     everything
#   scripts/test.sh -p postbox-core     arguments for `cargo test` replace the choice of everything
#
# The last line is "N passed, N failed". The exit code is 0 only if tests ran and all of them passed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() {
    echo "scripts/test.sh: $*" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif have sudo && sudo -n true 2>/dev/null; then
        sudo -n "$@"
    elif have sudo && [ -t 0 ]; then
        sudo "$@"
    else
        die "needs root to run: $* (run that as root once, then start this script again)"
    fi
}

# Debian keeps the server's programs out of PATH, in a directory for each version.
have_postgres() {
    [ -n "${POSTBOX_TEST_PG_BIN:-}" ] || have initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}

install_packages() {
    have apt-get || die "please install: $* (this script knows only apt-get)"
    echo "installing: $*"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "$@"
}

# The package would also set up and start a server of its own; the tests start private ones.
install_postgres() {
    local no_server=/etc/postgresql-common/createcluster.d/postbox-tests.conf
    as_root mkdir -p "${no_server%/*}"
    echo 'create_main_cluster = false' | as_root tee "$no_server" >/dev/null
    install_packages postgresql
    as_root rm -f "$no_server"
    have_postgres || die "the package postgresql is installed, but there is no initdb"
}

# Programs in Python that tests start, the examples among them, with the packages of their users. Made anew when the list changes.
prepare_python() {
    local list=examples/python/requirements.txt home=target/python
    cmp -s "$list" "$home/installed.txt" && return
    have python3 || install_packages python3
    # Debian keeps what makes environments in a package of its own.
    python3 -c 'import ensurepip, venv' 2>/dev/null || install_packages python3-venv
    rm -rf "$home"
    python3 -m venv "$home" || die "python3 cannot make an environment in $home"
    "$home/bin/python" -m pip install -q --disable-pip-version-check -r "$list" ||
        die "pip cannot install the packages in $list: is the package index reachable?"
    cp "$list" "$home/installed.txt"
}

# What the examples in JavaScript need, outside of the sources. Made anew when the list changes.
prepare_node() {
    local list=examples/node/package-lock.json home=target/node
    cmp -s "$list" "$home/installed.json" && return
    have npm || install_packages nodejs npm
    rm -rf "$home"
    mkdir -p "$home"
    cp "$list" examples/node/package.json "$home"
    npm ci --prefix "$home" --no-audit --no-fund --loglevel=error ||
        die "npm cannot install the packages in $list: is the package registry reachable?"
    cp "$list" "$home/installed.json"
}

if ! have cargo && [ -f "$HOME/.cargo/env" ]; then
    # shellcheck source=/dev/null
    . "$HOME/.cargo/env"
fi
have cargo || die "there is no cargo; https://rustup.rs says how to install Rust"
have cc || install_packages gcc libc6-dev
have_postgres || install_postgres

# Incremental builds only help who changes the code and builds again; here they cost time and space.
export CARGO_INCREMENTAL=0
mkdir -p target
prepare_python
prepare_node
log=$(mktemp target/tests.XXXXXX)
trap 'rm -f "$log"' EXIT

choice=("$@")
[ $# -gt 0 ] || choice=(--workspace --all-features)
status=0
cargo test --locked --no-fail-fast "${choice[@]}" 2>&1 | tee "$log" || status=$?

# One line per test program: "test result: ok. 5 passed; 0 failed; 1 ignored; …".
read -r passed failed ignored < <(awk '
    /^test result: / { for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) p += $(i - 1); if ($i ~ /^failed/) f += $(i - 1); if ($i ~ /^ignored/) g += $(i - 1) } }
    END { print p + 0, f + 0, g + 0 }' "$log")

echo
[ "$ignored" -eq 0 ] || echo "ignored: $ignored"
if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
    echo "the build failed or a test program broke off; that counts as one failure"
    failed=1
fi
if [ "$passed" -eq 0 ] && [ "$failed" -eq 0 ]; then
    echo "no test ran; that counts as one failure"
    failed=1
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
