#!/bin/sh
# Copy a prefix of S3 into the pod. `aws s3 sync` of a prefix that holds nothing succeeds, and a server that then
# finds no compiled graphs would compile for half an hour on an accelerator: so nothing fetched is a failure.
set -eu
source=$1
target=$2

aws s3 sync --only-show-errors "$source" "$target"

if [ -z "$(ls -A "$target" 2>/dev/null)" ]; then
  echo "Nothing is stored under $source. Upload it there, or correct the address in platform.yaml." >&2
  exit 1
fi
