//go:build !linux

package malgo

import "errors"

func runFirst() error { return errors.ErrUnsupported }
