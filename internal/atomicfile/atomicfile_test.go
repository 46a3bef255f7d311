package atomicfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"bellbird/internal/atomicfile"
)

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	path := filepath.Join(dir, "file")
	for _, text := range []string{"old", "new"} {
		if err := atomicfile.Write(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || string(got) != text || info.Mode().Perm() != 0o640 {
			t.Errorf("%q, %v, %v, %v", got, info.Mode(), err, statErr)
		}
	}
	// Where it can't take the place of what is there, nothing is left beside it.
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "taken", "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(filepath.Join(dir, "taken"), nil, 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v is left, %v", left, err)
	}
}
