// The service worker. It only shows notifications on phones, where a page cannot; it fetches and caches nothing.

/** The little of a service worker that is used here: the types of pages know none. */
const worker = /** @type {WorkerScope} */ (/** @type {unknown} */ (self));

worker.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(lead(event.notification.data?.hash ?? "#/inbox"));
});

/** @param {string} hash */
async function lead(hash) {
  const [page] = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  if (!page) return worker.clients.openWindow(`/${hash}`);
  page.postMessage({ hash });
  return page.focus();
}
