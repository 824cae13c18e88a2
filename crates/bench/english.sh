#!/bin/sh
# Unpacks documentation packages of Debian into a directory, for the data set of English records:
#
#   crates/bench/english.sh /data/english
#   drumlin gen english --docs /data/english --bytes 200MB --out english.tsv
#
# Nothing is installed: packages are downloaded by apt-get and unpacked by dpkg-deb. About 160 MB come
# over the network and 700 MB of disk are needed while unpacking; what stays is HTML and text.
set -eu
dir=${1:?which directory?}
PACKAGES=${PACKAGES:-"linux-doc-6.1 debian-handbook python3.11-doc postgresql-doc-15 git-doc debian-policy
developers-reference debian-reference-en apache2-doc ntp-doc bind9-doc python-django-doc python-sqlalchemy-doc
sqlite3-doc r-doc-html octave-doc gnuplot-doc maxima-doc libreoffice-help-en-us gimp-help-en aptitude-doc-en
installation-guide-amd64 tcl8.6-doc autoconf-doc"}
mkdir -p "$dir/.unpack"
cd "$dir/.unpack"
for package in $PACKAGES; do
    # A package that this release does not have is left out.
    if apt-get -qq download "$package" 2>/dev/null; then
        dpkg-deb -x "$package"_*.deb "$package"
        rm "$package"_*.deb
        mkdir -p "../$package"
        find "$package" -type f -name '*.gz' -exec gunzip -f {} + 2>/dev/null || true
        (cd "$package" && find . -type f \( -name '*.html' -o -name '*.htm' -o -name '*.txt' -o -name '*.rst' \) \
            -print0 | tar -c --null -T - ) | tar -x -C "../$package"
        rm -rf "$package"
        echo "$package: $(du -sm "../$package" | cut -f1) MB"
    else
        echo "$package: not in this release, left out" >&2
    fi
done
cd ..
rm -rf .unpack
