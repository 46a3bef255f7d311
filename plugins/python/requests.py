# The part of requests that plugins use: get and post. The appliance does them, as far as the plugin's plugin.json lists
# the hosts and its user lets it have them: there is no network here.
import base64 as _base64
import json as _json
from urllib.parse import urlencode as _urlencode


class RequestException(IOError):
    def __init__(self, *args, response=None):
        super().__init__(*args)
        self.response = response


class ConnectionError(RequestException):
    pass


class Timeout(RequestException):
    pass


class HTTPError(RequestException):
    pass


class JSONDecodeError(RequestException, ValueError):
    pass


class exceptions:
    RequestException, ConnectionError, Timeout, HTTPError, JSONDecodeError = (
        RequestException, ConnectionError, Timeout, HTTPError, JSONDecodeError)


class Headers(dict):
    """Headers, whatever the case of their names."""

    def __getitem__(self, key):
        return super().__getitem__(key.lower())

    def __contains__(self, key):
        return super().__contains__(key.lower())

    def get(self, key, default=None):
        return super().get(key.lower(), default)


class Response:
    encoding = "utf-8"
    reason = ""

    def __init__(self, url, answer):
        self.url = url
        self.status_code = answer["status"]
        self.text = answer.get("body", "")
        self.headers = Headers((k.lower(), v) for k, v in (answer.get("headers") or {}).items())

    @property
    def content(self):
        return self.text.encode()

    @property
    def ok(self):
        return self.status_code < 400

    def __bool__(self):
        return self.ok

    def json(self):
        try:
            return _json.loads(self.text)
        except ValueError as err:
            raise JSONDecodeError("the response is no JSON: %s" % err, response=self) from None

    def raise_for_status(self):
        if not self.ok:
            raise HTTPError("%d for %s" % (self.status_code, self.url.split("?")[0]), response=self)

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def request(method, url, params=None, data=None, json=None, headers=None, auth=None, timeout=None, **_):
    """Does a request. What has no meaning here, such as verify, is left out of account."""
    if params:
        query = params if isinstance(params, str) else _urlencode(params, doseq=True)
        url += ("&" if "?" in url else "?") + query
    sent = {}
    body = ""
    if json is not None:
        body, sent["Content-Type"] = _json.dumps(json), "application/json"
    elif isinstance(data, (bytes, bytearray)):
        body = data.decode()
    elif isinstance(data, str):
        body = data
    elif data:
        body, sent["Content-Type"] = _urlencode(data, doseq=True), "application/x-www-form-urlencoded"
    if auth:
        sent["Authorization"] = "Basic " + _base64.b64encode(("%s:%s" % tuple(auth)).encode()).decode()
    sent.update({str(k): str(v) for k, v in (headers or {}).items() if v is not None})
    if isinstance(timeout, (tuple, list)):
        timeout = sum(t for t in timeout if t)
    try:
        answer = ask_appliance({
            "method": method.upper(), "url": url, "headers": sent, "body": body, "timeout": int((timeout or 0) * 1e9),
        })
    except RuntimeError as err:
        raise ConnectionError(str(err)) from None
    if answer.get("error"):
        slow = "no answer in time" in answer["error"] or "deadline" in answer["error"]
        raise (Timeout if slow else ConnectionError)(answer["error"])
    return Response(url, answer)


def get(url, params=None, **options):
    return request("GET", url, params=params, **options)


def post(url, data=None, json=None, **options):
    return request("POST", url, data=data, json=json, **options)


class Session:
    def __init__(self):
        self.headers, self.auth = {}, None

    def request(self, method, url, headers=None, **options):
        options.setdefault("auth", self.auth)
        return request(method, url, headers={**self.headers, **(headers or {})}, **options)

    def get(self, url, **options):
        return self.request("GET", url, **options)

    def post(self, url, data=None, json=None, **options):
        return self.request("POST", url, data=data, json=json, **options)

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass
