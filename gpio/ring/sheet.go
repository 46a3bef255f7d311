package ring

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"strings"
	"time"

	"bellbird/gpio/led"
)

// An example is a scene worth a picture, with a name of its own.
type example struct {
	name  string
	scene Scene
	step  time.Duration // between two pictures
}

// examples are all that the ring can show: every rung from the top of the ladder, and what makes them look different.
func examples() []example {
	lasting := map[Rung]time.Duration{
		ResetArmed: 100 * time.Millisecond, ResetWarning: 2400 * time.Millisecond, Identify: 250 * time.Millisecond,
		Ringing: 100 * time.Millisecond, Waking: 60 * time.Millisecond, Failed: 200 * time.Millisecond, Deaf: 500 * time.Millisecond,
		NoServer: 250 * time.Millisecond, FollowUp: 400 * time.Millisecond, Timer: 50 * time.Second, Updating: 400 * time.Millisecond,
	}
	args := map[Rung]Args{
		Updating: {Fraction: 0.6},
		Volume:   {Fraction: 0.7},
		Failed:   {Kind: "model"},
		Borrowed: {Color: led.Color{R: 255, G: 105, B: 180}, Effect: Spin},
		Light:    {Color: led.Color{R: 255, G: 200, B: 120}, Effect: Breathe},
		Timer:    {Left: 5 * time.Minute, Total: 5 * time.Minute},
	}
	all := []example{
		{"muted", Scene{Rung: Idle, Muted: true}, time.Second},
		{"muted, timer ringing", Scene{Rung: Ringing, Muted: true}, 100 * time.Millisecond},
		{"muted, volume", Scene{Rung: Volume, Muted: true, Args: args[Volume]}, 0},
	}
	for _, r := range Rungs() {
		step := lasting[r]
		if step == 0 {
			step = 200 * time.Millisecond
		}
		if r == Light {
			step = 700 * time.Millisecond
		}
		e := example{r.String(), Scene{Rung: r, Args: args[r]}, step}
		switch r {
		case Failed:
			for _, kind := range []string{"recognizer", "model", "voice", "microphone", "locked", "deadline"} {
				e.name, e.scene.Args.Kind = "error: "+kind, kind
				all = append(all, e)
			}
			continue
		case Volume:
			all = append(all, e)
			e.name, e.scene.Args.Silent = "volume, silenced", true
		case Thinking, Speaking, Listening:
			all = append(all, e)
			if r == Listening {
				e.name, e.scene.Private = "listening, private", true
				all = append(all, e)
				e.name, e.scene.Private, e.scene.Night = "listening at night", false, Night
				all = append(all, e)
			}
			continue
		}
		all = append(all, e)
	}
	return append(all, example{"muted at night", Scene{Rung: Idle, Muted: true, Night: Night}, time.Second})
}

// The sheet's measures, in pixels.
const (
	cell     = 62
	pictures = 6
	label    = 170
	columns  = 2 // of examples
	margin   = 8
)

// Sheet writes a picture of all that a ring of count LEDs can show, as a PNG: six moments of each, from left to right.
func Sheet(w io.Writer, count int) error {
	if count < 1 || count > led.MaxCount {
		return fmt.Errorf("%d LEDs: there can be 1 to %d", count, led.MaxCount)
	}
	return png.Encode(w, sheet(count))
}

func sheet(count int) *image.RGBA {
	all := examples()
	rows := (len(all) + columns - 1) / columns
	img := image.NewRGBA(image.Rect(0, 0, columns*(label+pictures*cell)+2*margin, rows*cell+2*margin))
	for i := range img.Pix {
		img.Pix[i] = 24
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	for i, e := range all {
		x, y := margin+i/rows*(label+pictures*cell), margin+i%rows*cell
		write(img, x, y+cell/2-7, e.name)
		for n := range pictures {
			s := e.scene
			s.Elapsed = time.Duration(n)*e.step + 20*time.Millisecond
			s.Level = []float64{0.1, 0.5, 1, 0.7, 0.3, 0}[n]
			leds := make([]led.Color, count)
			Draw(leds, s)
			drawRing(img, float64(x+label+n*cell+cell/2), float64(y+cell/2), leds)
		}
	}
	return img
}

// drawRing draws LEDs in a circle, the first at the top.
func drawRing(img *image.RGBA, x, y float64, leds []led.Color) {
	radius := cell/2.0 - 9
	size := min(5, max(1, 2.6*radius/float64(len(leds))))
	if len(leds) == 1 {
		radius = 0
	}
	for i, c := range leds {
		angle := 2 * math.Pi * float64(i) / float64(len(leds))
		disc(img, x+radius*math.Sin(angle), y-radius*math.Cos(angle), size, c)
	}
}

// disc draws a LED with a soft edge. One that is off is a dark dot, and a dim one is easier to see than on a screen.
func disc(img *image.RGBA, x, y, size float64, c led.Color) {
	const off = 40
	see := func(v uint8) uint8 { return uint8(off + (255-off)*math.Pow(float64(v)/255, 0.7)) }
	lit := led.Color{R: see(c.R), G: see(c.G), B: see(c.B)}
	for py := int(y - size - 1); py <= int(y+size+1); py++ {
		for px := int(x - size - 1); px <= int(x+size+1); px++ {
			cover := min(max(size+0.5-math.Hypot(float64(px)-x, float64(py)-y), 0), 1)
			if cover == 0 {
				continue
			}
			under := img.RGBAAt(px, py)
			cover = math.Ceil(cover*4) / 4 // few shades make a small file
			mix := func(a, b uint8) uint8 { return uint8(float64(a)*(1-cover)+float64(b)*cover) &^ 7 }
			img.SetRGBA(px, py, color.RGBA{mix(under.R, lit.R), mix(under.G, lit.G), mix(under.B, lit.B), 255})
		}
	}
}

// glyphs are the letters of the sheet, each five wide and seven high, a row after the other.
var glyphs = map[rune]string{
	'a': "....." + "....." + ".###." + "....#" + ".####" + "#...#" + ".####",
	'b': "#...." + "#...." + "####." + "#...#" + "#...#" + "#...#" + "####.",
	'c': "....." + "....." + ".####" + "#...." + "#...." + "#...." + ".####",
	'd': "....#" + "....#" + ".####" + "#...#" + "#...#" + "#...#" + ".####",
	'e': "....." + "....." + ".###." + "#...#" + "#####" + "#...." + ".###.",
	'f': "..##." + ".#..." + "####." + ".#..." + ".#..." + ".#..." + ".#...",
	'g': "....." + ".####" + "#...#" + "#...#" + ".####" + "....#" + ".###.",
	'h': "#...." + "#...." + "####." + "#...#" + "#...#" + "#...#" + "#...#",
	'i': "..#.." + "....." + ".##.." + "..#.." + "..#.." + "..#.." + ".###.",
	'j': "...#." + "....." + "..##." + "...#." + "...#." + "#..#." + ".##..",
	'k': "#...." + "#...." + "#..#." + "#.#.." + "##..." + "#.#.." + "#..#.",
	'l': ".##.." + "..#.." + "..#.." + "..#.." + "..#.." + "..#.." + ".###.",
	'm': "....." + "....." + "##.#." + "#.#.#" + "#.#.#" + "#.#.#" + "#.#.#",
	'n': "....." + "....." + "####." + "#...#" + "#...#" + "#...#" + "#...#",
	'o': "....." + "....." + ".###." + "#...#" + "#...#" + "#...#" + ".###.",
	'p': "....." + "####." + "#...#" + "#...#" + "####." + "#...." + "#....",
	'q': "....." + ".####" + "#...#" + "#...#" + ".####" + "....#" + "....#",
	'r': "....." + "....." + "#.##." + "##..." + "#...." + "#...." + "#....",
	's': "....." + "....." + ".####" + "#...." + ".###." + "....#" + "####.",
	't': ".#..." + ".#..." + "####." + ".#..." + ".#..." + ".#..." + "..##.",
	'u': "....." + "....." + "#...#" + "#...#" + "#...#" + "#...#" + ".####",
	'v': "....." + "....." + "#...#" + "#...#" + "#...#" + ".#.#." + "..#..",
	'w': "....." + "....." + "#.#.#" + "#.#.#" + "#.#.#" + "#.#.#" + ".#.#.",
	'x': "....." + "....." + "#...#" + ".#.#." + "..#.." + ".#.#." + "#...#",
	'y': "....." + "#...#" + "#...#" + "#...#" + ".####" + "....#" + ".###.",
	'z': "....." + "....." + "#####" + "...#." + "..#.." + ".#..." + "#####",
	'-': "....." + "....." + "....." + ".###." + "....." + "....." + ".....",
	',': "....." + "....." + "....." + "....." + ".##.." + "..#.." + ".#...",
	':': "....." + "..#.." + "....." + "....." + "....." + "..#.." + ".....",
}

// write writes text, its letters two pixels to a dot high and one and a half wide.
func write(img *image.RGBA, x, y int, text string) {
	for _, letter := range text {
		y := y
		if strings.ContainsRune("gpqy", letter) {
			y += 2 // below the line
		}
		for i, dot := range glyphs[letter] {
			if dot != '#' {
				continue
			}
			for dy := range 2 {
				for dx := range 2 {
					img.SetRGBA(x+i%5*3/2+dx, y+i/5*2+dy, color.RGBA{210, 210, 210, 255})
				}
			}
		}
		x += 8
	}
}

// Terminal is the LEDs as a line of text, with their colours if the terminal has them.
func Terminal(leds []led.Color, colors bool) string {
	var b strings.Builder
	for _, c := range leds {
		lit := c != led.Color{}
		switch {
		case !colors && lit:
			b.WriteString("●")
		case !colors:
			b.WriteString("○")
		case lit:
			fmt.Fprintf(&b, "\x1b[38;2;%d;%d;%dm●", c.R, c.G, c.B)
		default:
			b.WriteString("\x1b[90m○")
		}
	}
	if colors {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}
