"""Senders whose events a package declares in TypeScript: which package, which types, and where a kind's name is.

`Typed.types` is TypeScript whose `Root` is an event, or a union of all; `{package}` is the package's folder. `wrap`
puts what the types describe into the body that is sent: SDKs declare the event, and not always the envelope.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Typed:
    """A package's declarations: its name, what to read of them, and the places of the literals that name a kind."""

    package: str
    types: str | Callable[[Path], str]
    kinds: tuple[str, ...]
    wrap: Callable[[Any], Any] = lambda shape: shape
    rename: Callable[[str], str] = lambda kind: kind


def imported(name: str, module: str, root: str = "") -> str:
    """Return TypeScript whose root is `name` of `module`, or made of it."""
    return f"import type {{{name.partition('<')[0]}}} from '{module}'; export type Root = {root or name};"


def _zoom(package: Path) -> str:
    """Zoom's SDK keeps the types of its events to itself, so they are read where they are declared."""
    files = [file for file in sorted(package.glob("*/*.d.ts")) if "= Event<" in file.read_text("utf-8")]
    spaces = []
    for number, file in enumerate(files):
        text = re.sub(r"^(import|export) .*$", "", file.read_text("utf-8"), flags=re.MULTILINE)
        names = re.findall(r"^type (\w+) = Event<", text, flags=re.MULTILINE)
        text = re.sub(r"^declare ", "", text, flags=re.MULTILINE)
        types = [
            each.removesuffix("Event") and f"export type E{number} = {' | '.join(names)};"
            for each in names[:1]
        ]
        spaces.append(
            f"declare namespace N{number} {{ type Event<T extends string> = {{event: T; event_ts: number}};"
        )
        spaces.append(_only_types(text) + " ".join(types) + "}")
    roots = " | ".join(f"N{number}.E{number}" for number in range(len(files)))
    return "\n".join(spaces) + f"\nexport type Root = {roots};"


def _only_types(text: str) -> str:
    """Return the type aliases of events in a declaration file, each up to the `;` that ends it."""
    return "\n".join(
        re.findall(
            r"^type \w+ = Event<.*?^}>?;$|^type \w+ = Event<[^;{]*;$", text, flags=re.MULTILINE | re.DOTALL
        )
    )


def _plaid(package: Path) -> str:
    """Plaid's generated types have texts where kinds are; their comments say which."""
    text = (package / "dist" / "api.d.ts").read_text("utf-8")
    found = []
    for name, body in re.findall(r"export interface (\w+) \{\n(.*?)\n\}", text, flags=re.DOTALL):
        said = [
            re.search(rf"\* `(\w+)`[^/]*\*/\s+{field}: string;", body)
            for field in ("webhook_type", "webhook_code")
        ]
        if all(said):
            kind, code = (each[1] for each in said if each)
            found.append(f"(P.{name} & {{webhook_type: '{kind}', webhook_code: '{code}'}})")
    return f"import type * as P from '{package}/dist/api'; export type Root = {' | '.join(found)};"


def _notion(package: Path) -> str:
    file = "build/src/api-endpoints/webhooks"
    names = re.findall(r"type (\w+WebhookPayload) ", (package / f"{file}.d.ts").read_text("utf-8"))
    root = " | ".join(f"N.{name}" for name in names)
    return f"import type * as N from '{package}/{file}'; export type Root = {root};"


def _polar(package: Path) -> str:
    folder = package / "dist" / "esm" / "models" / "components"
    files = sorted(folder.glob("webhook*payload.d.ts"))
    lines = [
        f"import type {{{name}$Outbound as T{number}}} from '{file.with_suffix('').with_suffix('')}.js';"
        for number, file in enumerate(files)
        if (name := (re.search(r"type (\w+)\$Outbound", file.read_text("utf-8")) or [0, ""])[1])
    ]
    return "".join(lines) + f"export type Root = {' | '.join(f'T{at}' for at in range(len(lines)))};"


TYPED = {
    "anthropic_managed_agents": Typed(
        "@anthropic-ai/sdk",
        imported("BetaWebhookEvent", "@anthropic-ai/sdk/resources/beta/webhooks"),
        ("data.type",),
    ),
    "azure_event_grid": Typed(
        "@azure/eventgrid",
        "import type {SystemEventNameToEventData as S} from '@azure/eventgrid'; type Each<K extends keyof S> ="
        " K extends string ? {id: string; topic: string; subject: string; eventType: K; eventTime: string;"
        " dataVersion: string; metadataVersion: string; data: S[K]} : never; export type Root = Each<keyof S>;",
        ("eventType",),
        lambda event: [event],
    ),
    "bot_framework": Typed(
        "botframework-schema",
        "import type {Activity, ActivityTypes} from 'botframework-schema'; type Each<K> = K extends string ?"
        " Omit<Activity, 'type' | 'id' | 'timestamp'> & {type: K; id: string; timestamp: string} : never;"
        "export type Root = Each<`${ActivityTypes}`>;",
        ("type",),
    ),
    "clerk": Typed("@clerk/backend", imported("WebhookEvent", "@clerk/backend"), ("type",)),
    "chargebee": Typed(
        "chargebee",
        "import type {WebhookEvent} from 'chargebee'; type Each<E> ="
        " E extends {event_type?: infer K} ? Omit<E, 'event_type'> & {event_type: K} : never;"
        "export type Root = Each<WebhookEvent>;",
        ("event_type",),
    ),
    "discord": Typed(
        "discord-api-types", imported("APIWebhookEvent", "discord-api-types/v10"), ("event.type",)
    ),
    "dub": Typed(
        "dub",
        imported("WebhookEvent", "{package}/dist/esm/models/components/webhookevent.js"),
        ("event",),
    ),
    "figma": Typed(
        "@figma/rest-api-spec",
        "import type * as F from '@figma/rest-api-spec'; export type Root = F.WebhookPingPayload"
        " | F.WebhookFileUpdatePayload | F.WebhookFileDeletePayload | F.WebhookFileVersionUpdatePayload"
        " | F.WebhookLibraryPublishPayload | F.WebhookFileCommentPayload | F.WebhookDevModeStatusUpdatePayload;",
        ("event_type",),
    ),
    "finch": Typed(
        "@tryfinch/finch-api",
        "import type {WebhookEvent} from '@tryfinch/finch-api/resources/webhooks'; type Each<E> ="
        " E extends {event_type?: infer K} ? Omit<E, 'event_type'> & {event_type: NonNullable<K>} : never;"
        "export type Root = Each<WebhookEvent>;",
        ("event_type",),
    ),
    "kontent_ai": Typed(
        "@kontent-ai/webhook-helper",
        imported("WebhookNotification", "@kontent-ai/webhook-helper"),
        ("message.object_type", "message.action"),
        lambda notification: {"notifications": [notification]},
    ),
    "line": Typed(
        "@line/bot-sdk",
        imported("Event", "{package}/dist/webhook/model/event.js"),
        ("type",),
        lambda event: {"destination": "string", "events": [event]},
    ),
    "linear": Typed(
        "@linear/sdk",
        "import type {LinearWebhookPayload} from '@linear/sdk/webhooks'; type Done = 'create' | 'update' | 'remove';"
        "type Each<E> = E extends {type: infer T; action: infer A} ? string extends T ? never : string extends A ? E & {action: Done} : E : E;"  # noqa: E501  one line of TypeScript
        "export type Root = Each<LinearWebhookPayload>;",
        ("type", "action"),
    ),
    "lithic": Typed(
        "lithic",
        "import type {ParsedWebhookEvent} from 'lithic/resources/webhooks'; type Each<E> ="
        " E extends {event_type?: infer K} ? Omit<E, 'event_type'> & {event_type: K} : never;"
        "export type Root = Each<ParsedWebhookEvent>;",
        ("event_type",),
    ),
    "liveblocks": Typed("@liveblocks/node", imported("WebhookEvent", "@liveblocks/node"), ("type",)),
    "meta": Typed(
        "whatsapp-api-js",
        imported("PostData", "{package}/lib/types.js"),
        ("object",),
        rename=lambda _: "whatsapp_business_account",
    ),
    "mux": Typed(
        "@mux/mux-node", imported("UnwrapWebhookEvent", "{package}/resources/webhooks/webhooks"), ("type",)
    ),
    "notion": Typed("@notionhq/client", _notion, ("type",)),
    "onfido": Typed(
        "@onfido/api",
        "import type * as O from '@onfido/api'; type Each<K> = K extends string ?"
        " {payload: O.WebhookEventPayload & {action: K}} : never;"
        "export type Root = Each<Exclude<O.WebhookEventType, '11184809'>>;",
        ("?payload.action",),
    ),
    "openai": Typed("openai", imported("UnwrapWebhookEvent", "openai/resources/webhooks"), ("type",)),
    "paddle_billing": Typed(
        "@paddle/paddle-node-sdk",
        imported("IEvents", "{package}/dist/types/types/events/events-response.js"),
        ("event_type",),
    ),
    "plaid": Typed("plaid", _plaid, ("webhook_type", "webhook_code")),
    "polar": Typed("@polar-sh/sdk", _polar, ("type",)),
    "resend": Typed("resend", imported("WebhookEventPayload", "resend"), ("type",)),
    "revenuecat": Typed(
        "@puzzmo/revenue-cat-webhook-types", imported("Webhook", "{package}/index"), ("event.type",)
    ),
    "shippo": Typed(
        "shippo",
        "import type {WebhookPayload$Outbound as W} from '{package}/models/components/webhookpayload.js';"
        "import type {Batch} from '{package}/models/components/batch.js';"
        "type Sent<K extends string> = K extends `${infer C}${infer Rest}` ?"
        " `${C extends Lowercase<C> ? C : `_${Lowercase<C>}`}${Sent<Rest>}` : K;"
        "type OfBatch = {event: 'batch_created' | 'batch_purchased'};"
        "export type Root = Exclude<W, OfBatch>"
        " | (OfBatch & {test: boolean; data: {[K in keyof Batch as Sent<K & string>]: Batch[K]}});",
        ("?event",),
    ),
    "slack": Typed(
        "@slack/types",
        "import type {SlackEvent} from '@slack/types'; import type {EnvelopedEvent} from '@slack/bolt';"
        "type Each<E> = E extends unknown ? EnvelopedEvent<E> : never; export type Root = Each<SlackEvent>;",
        ("event.type", "event.subtype"),
    ),
    "stream": Typed(
        "@stream-io/node-sdk",
        "import type {WHEvent} from '{package}/dist/src/gen/models';"
        "export type Root = Exclude<WHEvent, {type: '*'}>;",
        ("type",),
    ),
    "stripe": Typed(
        "stripe", "import type Stripe from 'stripe'; export type Root = Stripe.Event;", ("type",)
    ),
    "telegram": Typed(
        "@grammyjs/types",
        "import type {Update} from '@grammyjs/types'; type Name = Exclude<keyof Update, 'update_id'>;"
        "type Each<K extends Name> = K extends unknown ?"
        " {update_id: number; kind: K} & Required<Pick<Update, K>> : never; export type Root = Each<Name>;",
        ("kind",),
        lambda update: {key: each for key, each in update.items() if key != "kind"},
    ),
    "telnyx": Typed(
        "telnyx", imported("UnwrapWebhookEvent", "telnyx/resources/webhooks"), ("?data.event_type",)
    ),
    "workos": Typed("@workos-inc/node", imported("EventResponse", "@workos-inc/node"), ("event",)),
    "zoom": Typed("@zoom/rivet", _zoom, ("event",)),
}
