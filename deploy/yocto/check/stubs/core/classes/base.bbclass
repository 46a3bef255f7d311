# The tasks of a build, empty.
do_fetch() {
    :
}
addtask fetch
do_unpack() {
    :
}
addtask unpack after do_fetch
do_patch() {
    :
}
addtask patch after do_unpack
do_configure() {
    :
}
addtask configure after do_patch
do_compile() {
    :
}
addtask compile after do_configure
do_install() {
    :
}
addtask install after do_compile
do_build() {
    :
}
addtask build after do_install
