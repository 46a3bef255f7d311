//go:build !linux

package device

import "syscall"

func dieWithUs() *syscall.SysProcAttr { return nil }
