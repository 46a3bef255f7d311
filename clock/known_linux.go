package clock

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Known tells whether the machine knows the time of day: since it was started the clock has been set from the network,
// or the kernel has set it from a clock that runs on a battery. It may become false again when the network is gone for
// hours, although the clock is right then; who asks should remember.
func Known() bool { return known(os.DirFS("/"), disciplined) }

// notBefore is a time that no clock shows that has ever been set.
var notBefore = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func known(root fs.FS, disciplined func() bool) bool {
	// systemd-timesyncd leaves this file once it has set the clock; other services tell only the kernel.
	if _, err := fs.Stat(root, "run/systemd/timesync/synchronized"); err == nil || disciplined() {
		return true
	}
	if text, err := fs.ReadFile(root, "sys/class/rtc/rtc0/hctosys"); err != nil || strings.TrimSpace(string(text)) != "1" {
		return false
	}
	// Without its battery it has begun at some time long ago.
	text, err := fs.ReadFile(root, "sys/class/rtc/rtc0/since_epoch")
	if err != nil {
		return false
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return err == nil && time.Unix(seconds, 0).After(notBefore)
}

// disciplined tells whether the kernel's clock is kept right by a service.
func disciplined() bool {
	const timeError = 5 // TIME_ERROR: nobody does
	var t syscall.Timex
	state, err := syscall.Adjtimex(&t)
	return err == nil && state != timeError
}
