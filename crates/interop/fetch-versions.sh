#!/usr/bin/env bash
# usage: fetch-versions.sh DIR: puts RocksDB's libraries of the versions in versions.sha256 there, each as
# DIR/VERSION.so. They lie prebuilt in Maven's org.rocksdb:rocksdbjni, whose library has the whole C interface.
set -euo pipefail
mkdir -p "$1"
dir=$(cd "$1" && pwd)
sums=$(cd "$(dirname "$0")" && pwd)/versions.sha256
if ! command -v mvn >/dev/null || ! command -v unzip >/dev/null; then
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq maven unzip
fi
cd "$dir"
while read -r sum jar; do
  version=${jar#rocksdbjni-} version=${version%.jar}
  [ -e "$version.so" ] && continue
  mvn -q -B dependency:copy -Dartifact="org.rocksdb:rocksdbjni:$version" -DoutputDirectory="$dir"
  echo "$sum  $jar" | sha256sum -c --quiet
  unzip -p "$jar" librocksdbjni-linux64.so >"$version.so.part"
  mv "$version.so.part" "$version.so"
  rm "$jar"
done <"$sums"
