package ring

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the ladder and its picture into docs")

const (
	doc     = "../../docs/ring.md"
	picture = "../../docs/ring.png"
	begin   = "<!-- the ladder, written by the tests -->\n"
	end     = "<!-- end of the ladder -->\n"
)

// table is the ladder as the documentation has it.
func table() string {
	var b strings.Builder
	b.WriteString("| | shows | what it tells | ends after | also while muted |\n|---|---|---|---|---|\n")
	for i, r := range Rungs() {
		ends, muted := "", ""
		if r.Lasts() > 0 {
			ends = r.Lasts().String()
		}
		if r.WithMute() {
			muted = "yes"
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n", i+1, r, r.What(), ends, muted)
	}
	return b.String()
}

// The documentation shows the ladder as it is.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	shown, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the ladder", doc)
	}
	if *update {
		if err := os.WriteFile(doc, []byte(before+begin+table()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := Sheet(&file, 12); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(picture, file.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if shown != table() {
		t.Errorf("%s shows another ladder: run go test ./gpio/ring -update", doc)
	}
	kept, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	is, err := png.Decode(bytes.NewReader(kept))
	if err != nil {
		t.Fatal(err)
	}
	should := sheet(12)
	if is.Bounds() != should.Bounds() {
		t.Fatalf("%s is %v, should be %v: run go test ./gpio/ring -update", picture, is.Bounds(), should.Bounds())
	}
	// Arithmetic differs a little between processors, and the picture has steps of 8.
	a, b := pixels(is), should.Pix
	for i := range a {
		if d := int(a[i]) - int(b[i]); d < -9 || d > 9 {
			t.Fatalf("%s shows something else at %d: run go test ./gpio/ring -update", picture, i/4)
		}
	}
}

func pixels(img image.Image) []uint8 {
	same := image.NewRGBA(img.Bounds())
	draw.Draw(same, img.Bounds(), img, image.Point{}, draw.Src)
	return same.Pix
}
