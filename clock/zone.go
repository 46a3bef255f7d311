package clock

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A Zone follows a time zone file, such as /etc/localtime, when another is put in its place. time.Local doesn't: it is
// what the zone was when the program was started. A Zone may be used by several goroutines.
type Zone struct {
	file string
	mu   sync.Mutex
	read os.FileInfo
	zone *time.Location
}

// NewZone returns the zone of a file. Without a readable file it is time.Local; with a damaged one, what it was before.
func NewZone(file string) *Zone { return &Zone{file: file, zone: time.Local} }

// Location is the zone as it is now.
func (z *Zone) Location() *time.Location {
	z.mu.Lock()
	defer z.mu.Unlock()
	info, err := os.Stat(z.file)
	if err != nil || z.read != nil && os.SameFile(info, z.read) && info.ModTime().Equal(z.read.ModTime()) {
		return z.zone
	}
	data, err := os.ReadFile(z.file)
	if err != nil {
		return z.zone
	}
	if zone, err := time.LoadLocationFromTZData(z.name(), data); err == nil {
		z.read, z.zone = info, zone
	}
	return z.zone
}

// name is that of the zone if the file is a link into a database of zones, and else that of the file.
func (z *Zone) name() string {
	if target, err := filepath.EvalSymlinks(z.file); err == nil {
		if _, name, ok := strings.Cut(filepath.ToSlash(target), "/zoneinfo/"); ok {
			return name
		}
	}
	return filepath.Base(z.file)
}
