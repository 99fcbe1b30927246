# Sourced by cmake/quickstart: puts what a build needs on the machine, and installs only what is missing.

# The Debian and Ubuntu packages, as "package:tool" where a tool's presence is enough and "package" where it is not.
demo_packages='git:git g++:g++ cmake:cmake ninja-build:ninja libeigen3-dev nlohmann-json3-dev libcli11-dev'
test_packages="$demo_packages catch2 libbenchmark-dev clang-19:clang++-19 libclang-rt-19-dev"

have_package() {
  status=$(dpkg-query -W -f='${Status}' "$1" 2>/dev/null) && [ "$status" = 'install ok installed' ]
}

have() {
  case $1 in
    *:*) command -v "${1#*:}" >/dev/null ;;
    *) have_package "$1" ;;
  esac
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >/dev/null
}

# install_missing PACKAGE...: never fatal, because what is missing may be there under another name; CMake has the last
# word and says what it did not find.
install_missing() {
  missing=
  for entry in "$@"; do
    have "$entry" || missing="$missing ${entry%%:*}"
  done
  [ -n "$missing" ] || return 0
  if ! command -v apt-get >/dev/null; then
    say "no apt here, so these are yours to provide if they are missing:$missing"
  elif [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    say "neither root nor sudo; please run: apt-get install --no-install-recommends$missing"
  else
    # Unquoted: one word a package.
    # shellcheck disable=SC2086
    step "install$missing" apt_update_and_install $missing ||
      say "apt could not install all of:$missing; going on with what is there"
  fi
}

apt_update_and_install() {
  apt update && apt install --yes --no-install-recommends "$@"
}
