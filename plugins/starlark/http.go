package starlark

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"bellbird/plugins"
)

// httpModule is http: get and post, which wait for the answer, and cached, which never does. Times are in seconds.
//
//	http.get(url, headers={}, timeout=None)
//	http.post(url, body="", json=None, headers={}, timeout=None)
//	http.cached(url, every=300, headers={})   the last good response, or None
//
// What they return has status, headers, body, age and json(); and error, which is None, or says why there is no answer:
// then the status is 0.
func httpModule(fetch func(context.Context, plugins.Request) (*plugins.Response, error)) *starlarkstruct.Module {
	do := func(thread *starlark.Thread, r plugins.Request, headers *starlark.Dict, timeout, every starlark.Value) (starlark.Value, error) {
		if err := mayAct(thread); err != nil {
			return nil, err
		}
		if fetch == nil {
			return nil, errors.New("http: there is no network here")
		}
		var err error
		if r.Timeout, err = seconds("timeout", timeout); err != nil {
			return nil, err
		}
		if r.Every, err = seconds("every", every); err != nil {
			return nil, err
		}
		if err := setHeaders(&r, headers); err != nil {
			return nil, err
		}
		resp, err := fetch(callContext(thread), r)
		if err != nil {
			return nil, err
		}
		if resp == nil {
			return starlark.None, nil
		}
		return response(resp)
	}
	return &starlarkstruct.Module{Name: "http", Members: starlark.StringDict{
		"get": starlark.NewBuiltin("http.get", func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			r := plugins.Request{Method: http.MethodGet}
			var headers *starlark.Dict
			var timeout starlark.Value
			if err := starlark.UnpackArgs(b.Name(), args, kwargs, "url", &r.URL, "headers?", &headers, "timeout?", &timeout); err != nil {
				return nil, err
			}
			return do(thread, r, headers, timeout, nil)
		}),
		"post": starlark.NewBuiltin("http.post", func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			r := plugins.Request{Method: http.MethodPost}
			var headers *starlark.Dict
			var body, timeout starlark.Value
			if err := starlark.UnpackArgs(b.Name(), args, kwargs, "url", &r.URL, "body?", &r.Body, "json?", &body, "headers?", &headers, "timeout?", &timeout); err != nil {
				return nil, err
			}
			if body != nil && body != starlark.None {
				v, err := fromStarlark(body)
				if err != nil {
					return nil, fmt.Errorf("%s: json: %w", b.Name(), err)
				}
				text, err := json.Marshal(v)
				if err != nil {
					return nil, fmt.Errorf("%s: json: %w", b.Name(), err)
				}
				r.Body, r.Headers = string(text), map[string]string{"Content-Type": "application/json"}
			}
			return do(thread, r, headers, timeout, nil)
		}),
		"cached": starlark.NewBuiltin("http.cached", func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			r := plugins.Request{Method: http.MethodGet}
			var headers *starlark.Dict
			var every starlark.Value = starlark.MakeInt(300)
			if err := starlark.UnpackArgs(b.Name(), args, kwargs, "url", &r.URL, "every?", &every, "headers?", &headers); err != nil {
				return nil, err
			}
			return do(thread, r, headers, nil, every)
		}),
	}}
}

// seconds is a time in seconds, more than 0 if it is given.
func seconds(name string, v starlark.Value) (time.Duration, error) {
	if v == nil || v == starlark.None {
		return 0, nil
	}
	f, ok := starlark.AsFloat(v)
	if !ok || !(f > 0) || f > math.MaxInt32 {
		return 0, fmt.Errorf("http: %s is a number of seconds, more than 0", name)
	}
	return time.Duration(f * float64(time.Second)), nil
}

func setHeaders(r *plugins.Request, headers *starlark.Dict) error {
	if headers == nil {
		return nil
	}
	if r.Headers == nil {
		r.Headers = make(map[string]string, headers.Len())
	}
	for _, item := range headers.Items() {
		k, isText := starlark.AsString(item[0])
		v, isText2 := starlark.AsString(item[1])
		if !isText || !isText2 {
			return errors.New("http: headers are strings, by strings")
		}
		r.Headers[http.CanonicalHeaderKey(k)] = v
	}
	return nil
}

// response shows a response to a script.
func response(r *plugins.Response) (starlark.Value, error) {
	headers := starlark.NewDict(len(r.Headers))
	for _, k := range slices.Sorted(maps.Keys(r.Headers)) {
		if err := headers.SetKey(starlark.String(strings.ToLower(k)), starlark.String(r.Headers[k])); err != nil {
			return nil, err
		}
	}
	var failed starlark.Value = starlark.None
	if r.Error != "" {
		failed = starlark.String(r.Error)
	}
	return starlarkstruct.FromStringDict(starlark.String("response"), starlark.StringDict{
		"error":   failed,
		"status":  starlark.MakeInt(r.Status),
		"headers": headers,
		"body":    starlark.String(r.Body),
		"age":     starlark.Float(r.Age.Seconds()),
		"json": starlark.NewBuiltin("json", func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
				return nil, err
			}
			var v any
			if err := json.Unmarshal([]byte(r.Body), &v); err != nil {
				return nil, fmt.Errorf("the response is no JSON: %w", err)
			}
			return toStarlark(v)
		}),
	}), nil
}
