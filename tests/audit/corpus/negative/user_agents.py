"""A crawler that sends a user agent."""

import os
import time


def crawl(session, user_agent, urls, output):
    empty = 0
    while urls and empty < 3:
        page = session.get(urls.pop(), headers={"User-Agent": user_agent})
        if not page.text:
            empty += 1
        if os.path.exists(output):
            break
        time.sleep(1)
