// Shows notifications on phones, where a page cannot; it fetches nothing and keeps nothing.
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(lead(event.notification.data?.hash ?? "#/inbox"));
});

async function lead(hash) {
  const [page] = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  if (!page) return self.clients.openWindow(`/${hash}`);
  page.postMessage({ hash });
  return page.focus();
}
