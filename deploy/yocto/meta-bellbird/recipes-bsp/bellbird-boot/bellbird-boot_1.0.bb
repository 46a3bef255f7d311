SUMMARY = "Boot partitions with which the Raspberry Pi's firmware chooses a slot"
DESCRIPTION = "One file system that says which of the two boot partitions is taken, and the one that goes into both of them."
SECTION = "bsp"
LICENSE = "Apache-2.0"
LIC_FILES_CHKSUM = "file://${COMMON_LICENSE_DIR}/Apache-2.0;md5=89aea4e17d99a7cacdbeed46a0096b10"

DEPENDS = "dosfstools-native mtools-native"
INHIBIT_DEFAULT_DEPS = "1"

SRC_URI = ""

inherit deploy nopackages

COMPATIBLE_MACHINE = "^rpi$"
PACKAGE_ARCH = "${MACHINE_ARCH}"

# In MiB, as in bellbird-rpi.wks.in.
BELLBIRD_SELECT_SIZE ?= "16"
BELLBIRD_BOOT_SIZE ?= "128"

# A kernel that can't go on starts again, which takes the slot that has proved itself.
BELLBIRD_CMDLINE ?= "rootfstype=ext4 rootwait=30 ro panic=10 fsck.repair=yes quiet"

B = "${WORKDIR}/build"

# Stages what a machine boots from: IMAGE_BOOT_FILES, as wic understands it.
python do_compile() {
    import glob
    import os
    import shutil

    deploy = d.getVar('DEPLOY_DIR_IMAGE')
    boot = os.path.join(d.getVar('B'), 'boot')
    for entry in d.getVar('IMAGE_BOOT_FILES').split():
        source, _, target = entry.partition(';')
        found = sorted(glob.glob(os.path.join(deploy, source)))
        if not found:
            bb.fatal('%s is to be booted from, and is not in %s' % (source, deploy))
        for path in found:
            if '*' in source:
                name = os.path.join(target, os.path.basename(path))
            else:
                name = target or source
            to = os.path.normpath(os.path.join(boot, name))
            bb.utils.mkdirhier(os.path.dirname(to))
            shutil.copyfile(path, to)
    for slot, root in (('a', 5), ('b', 6)):
        with open(os.path.join(boot, 'cmdline-%s.txt' % slot), 'w') as f:
            f.write('root=/dev/mmcblk0p%d rauc.slot=%s %s\n' % (root, slot.upper(), d.getVar('BELLBIRD_CMDLINE')))

    # A Pi 3 or older, or Zero 2, reads this one from the first partition only; the others have it on board.
    choose = os.path.join(d.getVar('B'), 'select')
    bb.utils.mkdirhier(choose)
    first = os.path.join(deploy, d.getVar('BOOTFILES_DIR_NAME'), 'bootcode.bin')
    if os.path.exists(first):
        shutil.copy(first, choose)
    # tryboot of bellbird-system changes these two in place. Their length stays the same.
    with open(os.path.join(choose, 'autoboot.txt'), 'w') as f:
        f.write('[all]\ntryboot_a_b=1\nboot_partition=2\n[tryboot]\nboot_partition=3\n')
    with open(os.path.join(choose, 'slots'), 'w') as f:
        f.write('next=A A=good B=bad.\n')
}
do_compile[cleandirs] = "${B}"
do_compile[depends] += "\
    virtual/kernel:do_deploy \
    rpi-bootfiles:do_deploy \
    rpi-cmdline:do_deploy \
    rpi-config:do_deploy \
"

bellbird_fat() {
    rm -f $2
    mkfs.vfat --invariant -n $3 -C $2 $(expr $4 \* 1024)
    mcopy -s -m -i $2 $1/* ::/
}

do_deploy() {
    grep -q '^\[boot_partition=3\]' ${B}/boot/config.txt || bbfatal "config.txt doesn't tell the slots apart: see bellbird-rpi.inc"
    bellbird_fat ${B}/select ${DEPLOYDIR}/bellbird-select-${MACHINE}.vfat SELECT ${BELLBIRD_SELECT_SIZE}
    bellbird_fat ${B}/boot ${DEPLOYDIR}/bellbird-boot-${MACHINE}.vfat BOOT ${BELLBIRD_BOOT_SIZE}
}
addtask deploy before do_build after do_compile

do_configure[noexec] = "1"
do_install[noexec] = "1"
