package worker

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"bellbird/hooks"
	"bellbird/plugins"
)

// A message is its operation, a byte; its number; and those of its fields that are not zero, each after its own number, a
// byte, and 0 at the end. An event is made of fields in the same way. Numbers are varints; texts and bytes follow their
// length. A value is a byte that says what it is, and that.
//
// It is laid out by hand because a handler in the worker costs two messages, and JSON was half of what they took.

// The values.
const (
	isNil byte = iota
	isFalse
	isTrue
	isNumber // 64 bits, IEEE 754, big endian
	isText
	isBytes
	isList // its length, and its values
	isMap  // its length, and its keys and values
)

const (
	maxDepth  = 64
	maxValues = 1 << 18 // in a message
)

var (
	errDeep   = errors.New("a message is nested too deeply")
	errMany   = errors.New("a message has too many values, it is too large")
	errBroken = errors.New("a message is broken")
)

type encoder struct {
	b      []byte
	values int
	err    error
}

func (e *encoder) uint(n uint64) { e.b = binary.AppendUvarint(e.b, n) }

func (e *encoder) text(s string) {
	e.uint(uint64(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) value(v any, depth int) {
	if e.values++; e.values > maxValues {
		e.err = errMany
	}
	if depth > maxDepth {
		e.err = errDeep
	}
	if e.err != nil {
		return
	}
	switch v := v.(type) {
	case nil:
		e.b = append(e.b, isNil)
	case bool:
		if v {
			e.b = append(e.b, isTrue)
		} else {
			e.b = append(e.b, isFalse)
		}
	case float64:
		e.b = binary.BigEndian.AppendUint64(append(e.b, isNumber), math.Float64bits(v))
	case int:
		e.value(float64(v), depth)
		e.values--
	case string:
		e.b = append(e.b, isText)
		e.text(v)
	case []byte:
		e.b = append(e.b, isBytes)
		e.text(string(v))
	case []any:
		e.b = append(e.b, isList)
		e.uint(uint64(len(v)))
		for _, x := range v {
			e.value(x, depth+1)
		}
	case []string:
		e.b = append(e.b, isList)
		e.uint(uint64(len(v)))
		for _, x := range v {
			e.value(x, depth+1)
		}
	case map[string]any:
		if v == nil {
			e.b = append(e.b, isNil)
			return
		}
		e.b = append(e.b, isMap)
		e.uint(uint64(len(v)))
		for k, x := range v {
			e.text(k)
			e.value(x, depth+1)
		}
	default: // something else that JSON can say, such as a configuration
		var plain any
		text, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(text, &plain)
		}
		if err != nil {
			e.err = err
			return
		}
		e.value(plain, depth)
	}
}

type decoder struct {
	b      []byte
	values int
	err    error
}

// fail is the end of decoding: everything that is still asked for is zero.
func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err, d.b = err, nil
	}
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail(errBroken)
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		d.fail(errBroken)
		return 0
	}
	d.b = d.b[size:]
	return n
}

// length is that of what follows, each part of which has at least a byte.
func (d *decoder) length() int {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail(errBroken)
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.length()
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) value(depth int) any {
	if d.values++; d.values > maxValues {
		d.fail(errMany)
	}
	if depth > maxDepth {
		d.fail(errDeep)
	}
	switch d.byte() {
	case isNil:
		return nil
	case isFalse:
		return false
	case isTrue:
		return true
	case isNumber:
		if len(d.b) < 8 {
			d.fail(errBroken)
			return nil
		}
		n := math.Float64frombits(binary.BigEndian.Uint64(d.b))
		d.b = d.b[8:]
		return n
	case isText:
		return d.text()
	case isBytes:
		return []byte(d.text())
	case isList:
		n := d.length()
		list := make([]any, 0, min(n, 1024))
		for range n {
			if list = append(list, d.value(depth+1)); d.err != nil {
				return nil
			}
		}
		return list
	case isMap:
		n := d.length()
		m := make(map[string]any, min(n, 1024))
		for range n {
			k := d.text()
			if m[k] = d.value(depth + 1); d.err != nil {
				return nil
			}
		}
		return m
	}
	d.fail(errBroken)
	return nil
}

// list and dict are values that must be one.
func (d *decoder) list() []any {
	v, ok := d.value(0).([]any)
	if !ok {
		d.fail(errBroken)
	}
	return v
}

func (d *decoder) dict() map[string]any {
	v, ok := d.value(0).(map[string]any)
	if !ok {
		d.fail(errBroken)
	}
	return v
}

// texts are a list of nothing else.
func (d *decoder) texts() []string {
	list := d.list()
	texts := make([]string, len(list))
	for i, v := range list {
		s, ok := v.(string)
		if !ok {
			d.fail(errBroken)
		}
		texts[i] = s
	}
	return texts
}

// message puts the fields in that are not zero.
func (e *encoder) message(m *message) {
	e.b = append(e.b, byte(m.Op))
	e.uint(m.ID)
	for i, s := range []string{m.Plugin, m.File, m.Source, m.Point, m.Do, m.Key, m.Error} {
		if s != "" {
			e.b = append(e.b, byte(fieldPlugin+i))
			e.text(s)
		}
	}
	for i, n := range []uint64{m.Unit, m.Call} {
		if n != 0 {
			e.b = append(e.b, byte(fieldUnit+i))
			e.uint(n)
		}
	}
	for i, b := range []bool{m.System, m.Found} {
		if b {
			e.b = append(e.b, byte(fieldSystem+i))
		}
	}
	if m.Settings != nil {
		e.b = append(e.b, fieldSettings)
		e.value(m.Settings, 0)
	}
	if m.Value != nil {
		e.b = append(e.b, fieldValue)
		e.value(m.Value, 0)
	}
	if len(m.Args) > 0 {
		e.b = append(e.b, fieldArgs)
		e.value(m.Args, 0)
	}
	if len(m.Kwargs) > 0 {
		e.b = append(e.b, fieldKwargs)
		e.value(m.Kwargs, 0)
	}
	if len(m.Names) > 0 {
		e.b = append(e.b, fieldNames)
		e.value(m.Names, 0)
	}
	if m.Request != nil {
		e.json(fieldRequest, m.Request)
	}
	if m.Response != nil {
		e.json(fieldResponse, m.Response)
	}
	if m.Event != nil {
		e.b = append(e.b, fieldEvent)
		e.event(m.Event)
	}
	e.b = append(e.b, 0)
}

// json is a field that is rare.
func (e *encoder) json(field byte, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		e.err = err
		return
	}
	e.b = append(e.b, field)
	e.text(string(text))
}

// The fields of a message.
const (
	fieldPlugin = 1 + iota
	fieldFile
	fieldSource
	fieldPoint
	fieldDo
	fieldKey
	fieldError
	fieldUnit
	fieldCall
	fieldSystem
	fieldFound
	fieldValue
	fieldArgs
	fieldKwargs
	fieldNames
	fieldRequest
	fieldResponse
	fieldEvent
	fieldSettings
)

func (d *decoder) message(m *message) {
	m.Op = op(d.byte())
	m.ID = d.uint()
	for {
		switch f := d.byte(); f {
		case 0: // also after an error
			if len(d.b) > 0 {
				d.fail(errBroken)
			}
			return
		case fieldPlugin:
			m.Plugin = d.text()
		case fieldFile:
			m.File = d.text()
		case fieldSource:
			m.Source = d.text()
		case fieldPoint:
			m.Point = d.text()
		case fieldDo:
			m.Do = d.text()
		case fieldKey:
			m.Key = d.text()
		case fieldError:
			m.Error = d.text()
		case fieldUnit:
			m.Unit = d.uint()
		case fieldCall:
			m.Call = d.uint()
		case fieldSystem:
			m.System = true
		case fieldFound:
			m.Found = true
		case fieldValue:
			m.Value = d.value(0)
		case fieldSettings:
			m.Settings = d.dict()
		case fieldArgs:
			m.Args = d.list()
		case fieldKwargs:
			m.Kwargs = d.dict()
		case fieldNames:
			m.Names = d.texts()
		case fieldRequest:
			m.Request = new(plugins.Request)
			d.json(m.Request)
		case fieldResponse:
			m.Response = new(plugins.Response)
			d.json(m.Response)
		case fieldEvent:
			m.Event = new(hooks.Event)
			d.event(m.Event)
		default:
			d.fail(fmt.Errorf("a message with a field %d, which is not known", f))
			return
		}
	}
}

func (d *decoder) json(to any) {
	if err := json.Unmarshal([]byte(d.text()), to); err != nil {
		d.fail(err)
	}
}
