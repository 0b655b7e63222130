import socket
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from stepline.download.retry import EnoughError, WorthRetryingError, may_pass, retried, retry_after
from stepline.errors import DownloadError


class Client:
    """Fails in these ways, then succeeds; notes how long was waited."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.waits: list[float] = []

    def ask(self) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return "an answer"

    def retried(self, *, ended: bool = False) -> str:
        def sleep(wait_s: float) -> bool:
            self.waits.append(wait_s)
            return ended

        return retried(self.ask, attempts=4, longest_wait_s=60, prefix="host: ", sleep=sleep)


def test_lost_connections_and_passing_failures_are_tried_again_later_each_time() -> None:
    client = Client(httpx.ReadError("cut"), WorthRetryingError("busy"), httpx.ConnectTimeout(""))
    assert client.retried() == "an answer"
    assert client.waits == [1, 2, 4]


def test_after_the_last_attempt_its_reason_is_the_error() -> None:
    client = Client(*[WorthRetryingError("busy")] * 3, httpx.ReadTimeout(""), AssertionError())
    with pytest.raises(DownloadError, match=r"^host: ReadTimeout \(4 attempts\)$"):
        client.retried()
    assert client.waits == [1, 2, 4]


def test_what_the_server_asks_for_is_waited_and_never_less_than_without_it() -> None:
    client = Client(WorthRetryingError("busy", 7), WorthRetryingError("busy", 0.5), WorthRetryingError("busy", 60))
    assert client.retried() == "an answer"
    assert client.waits == [7, 2, 60]


def test_a_server_that_asks_for_longer_is_left_alone() -> None:
    client = Client(WorthRetryingError("busy", 61))
    with pytest.raises(EnoughError, match="^host: busy, requests a wait of 61 s$"):
        client.retried()
    assert client.waits == []


def test_attempts_can_be_ended_while_they_wait() -> None:
    client = Client(*[WorthRetryingError("busy")] * 2)
    with pytest.raises(DownloadError, match=r"^host: busy \(1 attempts\)$"):
        client.retried(ended=True)
    assert len(client.failures) == 1


@pytest.mark.parametrize("error", [DownloadError("refused"), OSError("disk full")])
def test_another_error_is_not_tried_again(error: Exception) -> None:
    client = Client(error)
    with pytest.raises(type(error), match=str(error)):
        client.retried()
    assert client.waits == []


def test_an_address_that_cannot_be_asked_is_one_line() -> None:
    with pytest.raises(DownloadError, match="^host: no port$"):
        Client(httpx.InvalidURL("no port")).retried()


def caused(by: Exception) -> httpx.ConnectError:
    """Return the error of httpx's that ``by`` becomes."""
    error = httpx.ConnectError(str(by))
    error.__cause__ = by
    return error


@pytest.mark.parametrize(
    "error",
    [
        httpx.TooManyRedirects("too many"),
        httpx.UnsupportedProtocol("ftp"),
        caused(ssl.SSLCertVerificationError("expired")),
        caused(socket.gaierror(socket.EAI_NONAME, "unknown name")),
    ],
)
def test_what_cannot_pass_is_tried_once(error: httpx.RequestError) -> None:
    client = Client(error)
    with pytest.raises(DownloadError, match=r"^host: ") as raised:
        client.retried()
    assert "attempts" not in str(raised.value)
    assert client.waits == []


def test_a_name_that_cannot_be_looked_up_now_is_tried_again() -> None:
    assert Client(caused(socket.gaierror(socket.EAI_AGAIN, "try again"))).retried() == "an answer"


def test_an_error_names_no_password() -> None:
    with pytest.raises(DownloadError, match=r"^host: http://a/ has no port \(4 attempts\)$"):
        Client(*[httpx.ReadError("http://u:SECRET@a/ has no port")] * 4).retried()


def test_what_may_pass() -> None:
    statuses = [200, 301, 400, 401, 403, 404, 408, 409, 410, 416, 429, 500, 503, 599]
    assert [status for status in statuses if may_pass(status)] == [408, 409, 429, 500, 503, 599]


BEYOND = "Mon, 02 Jan 99999999999 00:00:00 GMT"


def test_a_wait_is_in_seconds_or_until_a_date() -> None:
    later, before = (format_datetime(datetime.now(UTC) + timedelta(seconds=s), usegmt=True) for s in (30, -30))
    assert retry_after({"retry-after": "7"}) == 7
    assert retry_after(httpx.Headers({"Retry-After": later})) == pytest.approx(30, abs=5)
    assert [retry_after({"retry-after": text}) for text in (before, "soon", "", BEYOND)] == [0, 0, 0, 0]
    assert retry_after({}) == 0
