"""Plays YouTube for yt-dlp: asks for ``/<id>.json`` and does what it says, as yt-dlp's own extractor would."""

from yt_dlp.extractor.youtube import YoutubeIE


class PlayedYoutubeIE(YoutubeIE, plugin_name="played"):
    def _real_extract(self, url):
        video = self._match_id(url)
        answer = self._download_json(f"http://www.youtube.com/{video}.json", video)
        match answer:
            case {"login": reason}:
                self.raise_login_required(reason)
            case {"geo": reason}:
                self.raise_geo_restricted(reason)
            case {"reason": reason}:
                hint = f". {self._youtube_login_hint}" if "sign in" in reason.lower() else ""
                self.raise_no_formats(reason.rstrip(".") + hint if hint else reason, expected=True)
        return {"id": video, "title": video, "formats": answer["formats"]}
