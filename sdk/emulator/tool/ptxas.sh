#!/bin/sh
# Takes the place of ptxas in Python compilers that assemble their PTX at run time (Triton): the "machine code" is the PTX
# itself, which the emulated device executes. tessera-emu tells Triton about it.
version='Cuda compilation tools, release 13.0, V13.0.0, PTX is kept for tessera-emu'
input=
output=
while [ $# -gt 0 ]; do
    case $1 in
        -V | --version)
            echo "$version"
            exit 0
            ;;
        -o | --output-file)
            output=$2
            [ $# -gt 1 ] && shift
            ;;
        *.ptx) input=$1 ;;
    esac
    shift
done
if [ -z "$input" ] || [ -z "$output" ]; then
    echo "ptxas of tessera-emu: name a file that ends with .ptx, and the output with -o" >&2
    exit 1
fi
exec cp -- "$input" "$output"
